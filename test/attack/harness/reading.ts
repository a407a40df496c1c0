const headers = { "a2a-version": "1.0" };

/** Returns the status and length of a response, without keeping its text. */
export async function textLength(url: string): Promise<{ readonly status: number; readonly length: number }> {
  const response = await fetch(url, { headers });
  let length = 0;
  for await (const chunk of response.body ?? []) length += (chunk as Uint8Array).length;
  return { status: response.status, length };
}

export interface Listed {
  readonly ids: ReadonlySet<string>;
  readonly pages: number;
  /** The size of the largest page in bytes. */
  readonly longest: number;
}

/** Reads all pages of a list over REST. */
export async function pagesOf(url: string): Promise<Listed> {
  const ids = new Set<string>();
  let longest = 0;
  let pages = 0;
  for (let token = ""; ;) {
    const response = await fetch(token === "" ? url : `${url}&pageToken=${encodeURIComponent(token)}`, { headers });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`The list: ${response.status} ${text.slice(0, 500)}`);
    const page = JSON.parse(text) as { tasks: { id: string }[]; nextPageToken: string };
    for (const { id } of page.tasks) ids.add(id);
    longest = Math.max(longest, text.length);
    pages++;
    if (page.nextPageToken === "") return { ids, pages, longest };
    token = page.nextPageToken;
  }
}

interface SeenTask {
  readonly id: string;
  readonly status: { readonly state: string };
}

/** Reads the first page of an agent's tasks. */
export async function tasksOf(url: string): Promise<readonly SeenTask[]> {
  const response = await fetch(`${url}/tasks`, { headers });
  return ((await response.json()) as { tasks: readonly SeenTask[] }).tasks;
}
