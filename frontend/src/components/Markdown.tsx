/** A rule's page. */

import { blocks, type Block } from '../base/markdown';
import { plainLines } from '../base/tokens';
import { Code } from './Code';
import { Inline } from './Spans';

export const Markdown = ({ text }: { text: string }) => <div class="prose">{blocks(text).map(block)}</div>;

function block(found: Block) {
  switch (found.kind) {
    case 'paragraph': return <p><Inline text={found.text} /></p>;
    case 'code': return <Code label="Example" lines={plainLines(found.text.split('\n'))} />;
    case 'list': {
      const items = found.items.map((item) => <li><Inline text={item} /></li>);
      return found.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    default: return found satisfies never;
  }
}
