// A program that calls a server by gRPC once, and does nothing else.

import { connect } from "@parley/a2a";
import { grpcBinding } from "@parley/grpc/client";

const client = await connect(JSON.parse(process.argv[2] ?? ""), { bindings: [grpcBinding()] });
const { id } = await client.getTask("t");
process.stdout.write(id);
