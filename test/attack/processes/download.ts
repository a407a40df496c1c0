import { createHash } from "node:crypto";
import { connect } from "@parley/a2a";

/* The process of a client that downloads the files of a task: download.ts URL TASK. The process prints a line for each file. */

const [url = "", taskId = ""] = process.argv.slice(2);
const client = await connect(url);
for await (const file of client.download({ taskId })) {
  const hash = createHash("sha256");
  for await (const bytes of file.stream()) hash.update(bytes);
  console.log(file.name, hash.digest("hex"));
}
