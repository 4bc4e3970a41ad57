/** Links that open a file in an editor on the user's own computer. */

export type Editor = 'vscode' | 'cursor' | 'pycharm';
export const EDITORS: readonly Editor[] = ['vscode', 'cursor', 'pycharm'];

export const EDITOR_NAMES: Record<Editor, string> = { vscode: 'VS Code', cursor: 'Cursor', pycharm: 'PyCharm' };

export function editorFrom(text: string): Editor {
  switch (text) {
    case 'cursor': case 'pycharm': return text;
    default: return 'vscode';
  }
}

/** The editor's own address of a line. The path is absolute; every piece of it is encoded, so that it stays a path. */
export function editorUrl(editor: Editor, path: string, line: number): string {
  switch (editor) {
    case 'vscode': case 'cursor': return `${editor}://file/${encodedPath(path)}:${line}`;
    case 'pycharm': return `pycharm://open?file=${encodeURIComponent(path)}&line=${line}`;
    default: return editor satisfies never;
  }
}

/** `/job/my file.py` as `job/my%20file.py`, `C:\job\train.py` as `C:/job/train.py`. */
function encodedPath(path: string): string {
  const drive = /^[A-Za-z]:[\\/]/.test(path);
  const parts = (drive ? path.split(/[\\/]/) : path.split('/')).filter(Boolean);
  return parts.map((part, index) => (drive && index === 0 ? part : encodeURIComponent(part))).join('/');
}
