// Reads the body of a response of somebody else's server, up to a limit: it may be endless, by mistake or on purpose.

/** The body as text; rejects with `tooLarge` as its message if it has more than `most` bytes. */
export async function readBoundedText(response: Response, most: number, tooLarge: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > most) throw new Error(tooLarge);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
