/** Buttons. */

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Icon, type IconName } from './Icon';

interface ButtonProps {
  onClick: () => void;
  icon?: IconName;
  kind?: 'plain' | 'primary' | 'quiet';
  children: ComponentChildren;
}

export const Button = ({ onClick, icon, kind = 'plain', children }: ButtonProps) => (
  <button type="button" class={`button ${kind}`} onClick={onClick}>
    {icon && <Icon name={icon} />}
    {children}
  </button>
);

interface IconButtonProps { icon: IconName; label: string; onClick: () => void }

export const IconButton = ({ icon, label, onClick }: IconButtonProps) => (
  <button type="button" class="icon-button" aria-label={label} title={label} onClick={onClick}><Icon name={icon} /></button>
);

const CONFIRMED_MS = 1500;

interface CopyButtonProps { onCopy: () => Promise<boolean>; icon?: IconName; label: string; iconOnly?: boolean }

/** Confirms the copy for a moment. */
export function CopyButton({ onCopy, icon = 'copy', label, iconOnly = false }: CopyButtonProps) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(false), CONFIRMED_MS);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = (): void => void onCopy().then(setDone);
  const shown = done ? 'check' : icon;
  if (iconOnly) return <IconButton icon={shown} label={label} onClick={copy} />;
  return <Button icon={shown} onClick={copy}>{label}</Button>;
}
