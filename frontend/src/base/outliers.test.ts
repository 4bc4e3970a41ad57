import { expect, it } from 'vitest';
import { causeName } from './outliers';

it('names what an outlier holds as the page does elsewhere, and what it does not know as it is', () => {
  expect([
    causeName({ kind: 'wait', name: 'allocator' }), causeName({ kind: 'wait', name: 'moon_phase' }), causeName({ kind: 'wait', name: 'constructor' }),
    causeName({ kind: 'entry', name: 'The step waits for data' }), causeName({ kind: 'operator', name: 'aten::mm' }),
  ]).toEqual(['Memory from the driver', 'moon phase', 'constructor', 'The step waits for data', 'aten::mm']);
});
