/** Opens a line in an editor: a link, and beside it the choice of the editor. */

import { EDITOR_NAMES, EDITORS, editorFrom, editorUrl, type Editor } from '../base/editors';
import { Icon } from './Icon';

interface Props {
  path: string;
  line: number;
  editor: Editor;
  onEditor: (editor: Editor) => void;
  /** Called first; true if it has opened the line itself. */
  onOpen: (path: string, line: number) => boolean;
}

/**
 * In our frame the host page's policy forbids such an address, and the page around it would no longer receive clicks.
 */
const AWAY = '_blank';

export const OpenIn = ({ path, line, editor, onEditor, onOpen }: Props) => (
  <span class="open-in">
    <a class="button" href={editorUrl(editor, path, line)} target={AWAY} rel="noreferrer" title={`${path}:${line}`}
      onClick={(event) => { if (editor === 'vscode' && onOpen(path, line)) event.preventDefault(); }}>
      <Icon name="open" />Open in {EDITOR_NAMES[editor]}
    </a>
    <select aria-label="Editor" value={editor} onChange={(event) => onEditor(editorFrom(event.currentTarget.value))}>
      {EDITORS.map((each) => <option value={each}>{EDITOR_NAMES[each]}</option>)}
    </select>
  </span>
);
