/** The origin of a figure, behind a button beside its name. */

import { Popover } from './Popover';

interface Props { what: string; lines: readonly { name: string; text: string }[] }

export const Explained = ({ what, lines }: Props) => (
  <Popover label={`How “${what}” is found`} icon="info">
    {() => (
      <dl class="formula">
        {lines.map(({ name, text }) => <div><dt>{name}</dt><dd>{text}</dd></div>)}
      </dl>
    )}
  </Popover>
);
