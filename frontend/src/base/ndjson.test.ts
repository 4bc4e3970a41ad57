import { expect, it } from 'vitest';
import { lines } from './ndjson';

async function* pieces(...texts: string[]): AsyncGenerator<string> {
  yield* texts;
}

it('puts lines together that arrive in pieces', async () => {
  const found = [];
  for await (const line of lines(pieces('{"a":', '1}\n{"b"', ':2}\n\n', '{"c":3}'))) found.push(line);
  expect(found).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
});
