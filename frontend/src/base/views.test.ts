import { expect, it } from 'vitest';
import { emptyViews } from './views';

it.each([
  [['stacks', 'shapes', 'memory', 'device', 'steps'], []],
  [['stacks', 'shapes', 'steps'], ['kernels', 'memory']],
  [['stacks', 'memory'], ['kernels', 'roofline']],
  [['device'], ['modules']],
  [[], ['kernels', 'memory', 'modules', 'roofline']],
])('knows which views show nothing of a recording with %o', (recorded, views) => {
  expect(Object.keys(emptyViews(recorded)).toSorted()).toEqual(views);
});
