import { expect, it } from 'vitest';
import { causeName } from './outliers';

it('names what an outlier holds as the report does: a description begins a line, a name stays', () => {
  expect([
    causeName({ kind: 'wait', title: 'waiting for data' }), causeName({ kind: 'entry', title: 'The step waits for data' }), causeName({ kind: 'operator', title: 'aten::mm' }),
  ]).toEqual(['Waiting for data', 'The step waits for data', 'aten::mm']);
});
