import { expect, it } from 'vitest';
import { fileName, placeText, shortNames } from './places';

it('names files of both kinds of paths', () => {
  expect([fileName('/a/b/train.py'), fileName('C:\\a\\train.py'), fileName('train.py')]).toEqual(['train.py', 'train.py', 'train.py']);
  expect(placeText({ file: '/a/train.py', line: 7 })).toBe('train.py:7');
});

it('says what compiled code computes', () => {
  const place = { file: '/a/model.py', line: 190 };
  const also = [{ file: '/a/model.py', line: 189 }, { file: '/a/layers.py', line: 12 }];
  expect(placeText({ ...place, generated: { of: 'forward', also } })).toBe('model.py:190 (+189, layers.py:12)');
  expect(placeText({ ...place, generated: { of: 'backward', also: [] } })).toBe('backward of model.py:190');
});

it('shortens paths as far as they can be told apart', () => {
  expect([...shortNames(['/x/a/model.py', '/x/b/model.py', '/x/train.py', '/x/train.py'])]).toEqual([
    ['/x/a/model.py', 'a/model.py'], ['/x/b/model.py', 'b/model.py'], ['/x/train.py', 'train.py'],
  ]);
});
