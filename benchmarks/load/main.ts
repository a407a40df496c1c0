import { answerParent } from "../ipc.ts";
import { paced, requests } from "./requests.ts";
import { Crowd, fanIn, stream, type CrowdLoad } from "./streams.ts";

// The load program: the same for every server, in a separate process.

const crowd = new Crowd();

answerParent({
  requests,
  paced,
  stream,
  fanIn,
  openCrowd: (load: CrowdLoad) => crowd.open(load),
  emitToCrowd: (input: Parameters<Crowd["emit"]>[0]) => crowd.emit(input),
  hearCrowd: (input: Parameters<Crowd["hear"]>[0]) => crowd.hear(input),
  closeCrowd: () => crowd.close(),
});
