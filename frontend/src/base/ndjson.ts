/** Splits a stream of text pieces into its lines. */

export async function* lines(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of pieces) {
    const found = (rest + piece).split('\n');
    rest = found.pop() ?? '';
    yield* found.filter((line) => line.trim());
  }
  if (rest.trim()) yield rest;
}
