/** gRPC and gRPC-Web for Parley. */

export { serviceV03, serviceV1, type A2AMethod, type A2AServiceType } from "./services.ts";
