/** Milliseconds for which a failed write says that a disk is full. */
const memory = 10_000;

/** Whether the disk of a database is full, as its last writes show: nothing else tells it. */
export class FullDisk {
  #until = -Infinity;

  /** A write has failed for want of space, or has succeeded. */
  note(isFull: boolean): void {
    this.#until = isFull ? performance.now() + memory : -Infinity;
  }

  /** Requests are taken again some seconds after the last write that failed: one of them finds out whether there is space. */
  get isFull(): boolean {
    return performance.now() < this.#until;
  }
}
