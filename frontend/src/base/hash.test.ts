import { describe, expect, it } from 'vitest';
import { parseHash, withHash } from './hash';

describe('reading', () => {
  it('finds our keys among the tab and the keys of others', () => {
    expect(parseHash('#torchtidy&p.torchtidy.run=a%26b%3Dc&p.scalars.tag=x&foo=1')).toEqual({ run: 'a&b=c' });
  });

  it('takes what cannot be decoded as it is', () => {
    expect(parseHash('#torchtidy&p.torchtidy.q=%zz')).toEqual({ q: '%zz' });
  });

  it('is empty for an empty hash', () => {
    expect(parseHash('')).toEqual({});
  });
});

describe('writing', () => {
  it('keeps the tab and foreign keys untouched and in place', () => {
    expect(withHash('#timeseries&p.scalars.tag=a%20b', { run: 'x' })).toBe('#timeseries&p.scalars.tag=a%20b&p.torchtidy.run=x');
  });

  it('replaces and removes our keys', () => {
    expect(withHash('#torchtidy&p.torchtidy.run=old&p.torchtidy.q=1', { run: 'new', q: null })).toBe('#torchtidy&p.torchtidy.run=new');
  });

  it('names the tab where the hash names none, so that a shared link opens it', () => {
    expect(withHash('', { run: 'x' })).toBe('#torchtidy&p.torchtidy.run=x');
  });

  it('round-trips every character', () => {
    const run = 'a&b=c/ü %41#?';
    expect(parseHash(withHash('#torchtidy', { run }))).toEqual({ run });
  });
});
