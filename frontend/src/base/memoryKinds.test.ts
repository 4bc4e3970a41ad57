import { expect, it } from 'vitest';
import { layersOf, memoryKindText } from './memoryKinds';

it('stacks kinds in one order, whatever the server’s, and nothing below zero', () => {
  const layers = layersOf([
    { kind: 'unknown', bytes: [-2, 3], peak_bytes: 3 }, { kind: 'activation', bytes: [5, 0], peak_bytes: 0 }, { kind: 'earlier', bytes: [10, 10], peak_bytes: 10 },
  ]);
  expect(layers.map(({ kind, top }) => [kind, top])).toEqual([['earlier', [10, 10]], ['activation', [15, 10]], ['unknown', [15, 13]]]);
  expect(memoryKindText('gradient')).toBe('Gradients');
});
