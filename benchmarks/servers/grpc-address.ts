import { ServerCredentials, type Server } from "@grpc/grpc-js";

/** Lets a grpc-js server listen on a free port. Resolves with its address. */
export function listening(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(`127.0.0.1:${port}`);
      else reject(error);
    });
  });
}
