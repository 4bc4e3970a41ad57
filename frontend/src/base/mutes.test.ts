import { describe, expect, it } from 'vitest';
import { changed, isMuted, mutesFrom, NOTHING } from './mutes';

describe('mutes', () => {
  it('hide a finding by its id, or all findings of a check', () => {
    const finding = { id: 'a1', rule: 'one' };
    expect(isMuted(NOTHING, finding)).toBe(false);
    expect(isMuted({ findings: ['a1'], rules: [] }, finding)).toBe(true);
    expect(isMuted({ findings: ['one'], rules: [] }, finding)).toBe(false);
    expect(isMuted({ findings: [], rules: ['one'] }, finding)).toBe(true);
  });

  it('change by adding and taking away, each name once', () => {
    const before = { findings: ['b2', 'a1'], rules: ['one'] };
    expect(changed(before, { mute: { findings: ['a1', 'c3'], rules: [] }, unmute: { findings: ['b2'], rules: ['one', 'two'] } }))
      .toEqual({ findings: ['a1', 'c3'], rules: [] });
  });

  it('are read from whatever the browser has kept', () => {
    expect(mutesFrom('{"findings":["a1"],"rules":["one"]}')).toEqual({ findings: ['a1'], rules: ['one'] });
    for (const text of [null, '', '{', '3', 'null', '[]', '{"findings":{}}']) expect(mutesFrom(text)).toEqual(NOTHING);
    expect(mutesFrom('{"findings":[1,"a1"]}')).toEqual({ findings: ['a1'], rules: [] });
  });
});
