/** The parts of a bar in columns, one per group. */

import { Swatch } from './StackedBar';

interface Slice { colour: string; label: string; text: string; share: string }
interface Props { groups: readonly { group: string; label: string; text: string; share: string; slices: readonly Slice[] }[] }

export const GroupLegend = ({ groups }: Props) => (
  <ul class="group-legend">
    {groups.map(({ group, label, text, share, slices }) => (
      <li key={group}>
        <p class="group-line group-name"><span>{slices.length === 1 && slices[0]?.label === label && <Swatch colour={slices[0].colour} />}{label}</span><b class="number">{text}</b><span class="number muted">{share}</span></p>
        {(slices.length > 1 || slices[0]?.label !== label) && (
          <ul>
            {slices.map((slice) => (
              <li class="group-line"><span><Swatch colour={slice.colour} />{slice.label}</span><span class="number">{slice.text}</span><span class="number muted">{slice.share}</span></li>
            ))}
          </ul>
        )}
      </li>
    ))}
  </ul>
);
