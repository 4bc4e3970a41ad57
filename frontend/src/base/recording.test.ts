import { expect, it } from 'vitest';
import { listed, missing } from './recording';

it('names what unchecked rules need and the profile lacks', () => {
  const lack = missing(['stacks'], [{ needs: ['stacks', 'shapes'] }, { needs: ['shapes', 'memory'] }, { needs: ['stacks'] }]);
  expect(lack).toEqual({ labels: ['shapes', 'memory'], how: ['with `record_shapes=True`', 'with `profile_memory=True`'], rules: 2 });
});

it('advises a server nothing about steps', () => {
  const lack = missing([], [{ needs: ['steps', 'stacks'] }], true);
  expect(lack).toEqual({ labels: ['steps of the profiler', 'stacks'], how: ['with `with_stack=True`'], rules: 1 });
});

it('is silent where nothing is lacking', () => {
  expect(missing(['stacks'], [{ needs: ['stacks'] }])).toBeNull();
  expect(missing([], [])).toBeNull();
});

it('lists words', () => {
  expect([listed([]), listed(['a']), listed(['a', 'b']), listed(['a', 'b', 'c'])]).toEqual(['', 'a', 'a and b', 'a, b and c']);
});
