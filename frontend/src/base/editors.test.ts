import { expect, it } from 'vitest';
import { editorFrom, editorUrl } from './editors';

it('links to a line in each editor', () => {
  expect(editorUrl('vscode', '/job/train.py', 42)).toBe('vscode://file/job/train.py:42');
  expect(editorUrl('cursor', '/job/train.py', 42)).toBe('cursor://file/job/train.py:42');
  expect(editorUrl('pycharm', '/job/train.py', 42)).toBe('pycharm://open?file=%2Fjob%2Ftrain.py&line=42');
});

it('knows drives', () => {
  expect(editorUrl('vscode', 'C:\\my job\\train.py', 7)).toBe('vscode://file/C:/my%20job/train.py:7');
});

it('keeps whatever a path holds inside the path', () => {
  expect(editorUrl('vscode', '/a/x?y#z&line=1%2e"\'\\/train.py', 3))
    .toBe('vscode://file/a/x%3Fy%23z%26line%3D1%252e%22\'%5C/train.py:3');
  expect(editorUrl('pycharm', '/a/b&line=9#c', 3)).toBe('pycharm://open?file=%2Fa%2Fb%26line%3D9%23c&line=3');
  expect(new URL(editorUrl('vscode', 'javascript:alert(1)', 1)).protocol).toBe('vscode:');
});

it('takes no other editor from what was stored', () => {
  expect([editorFrom('pycharm'), editorFrom('javascript'), editorFrom('')]).toEqual(['pycharm', 'vscode', 'vscode']);
});
