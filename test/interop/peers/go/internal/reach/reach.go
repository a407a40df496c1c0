// Package reach connects to a server, over TLS if INTEROP_CA names its certificate.
package reach

import (
	"crypto/tls"
	"crypto/x509"
	"log"
	"net/http"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Dial returns the gRPC dial option, and makes the default HTTP client trust the same certificate.
func Dial() grpc.DialOption {
	file := os.Getenv("INTEROP_CA")
	if file == "" {
		return grpc.WithTransportCredentials(insecure.NewCredentials())
	}
	certificate, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	transport := http.DefaultTransport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots}))
}
