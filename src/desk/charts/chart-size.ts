// The width that a chart may draw in, in real pixels: a picture that is scaled would scale its letters too.
import { useEffect, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';

export function useWidth<E extends HTMLElement>(): { readonly element: RefObject<E | null>; readonly width: number } {
  const element = useRef<E>(null);
  const width = useSignal(0);
  useEffect(() => {
    const box = element.current;
    if (box === null) return undefined;
    width.value = Math.floor(box.clientWidth);
    const observer = new ResizeObserver(() => (width.value = Math.floor(box.clientWidth)));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return { element, width: width.value };
}
