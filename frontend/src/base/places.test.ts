import { expect, it } from 'vitest';
import { fileName, placeText, shortNames } from './places';

it('names files of both kinds of paths', () => {
  expect([fileName('/a/b/train.py'), fileName('C:\\a\\train.py'), fileName('train.py')]).toEqual(['train.py', 'train.py', 'train.py']);
  expect(placeText({ file: '/a/train.py', line: 7 })).toBe('train.py:7');
});

it('shortens paths as far as they can be told apart', () => {
  expect([...shortNames(['/x/a/model.py', '/x/b/model.py', '/x/train.py', '/x/train.py'])]).toEqual([
    ['/x/a/model.py', 'a/model.py'], ['/x/b/model.py', 'b/model.py'], ['/x/train.py', 'train.py'],
  ]);
});
