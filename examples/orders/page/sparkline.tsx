import { useEffect, useRef, useState } from 'react';

const SECONDS = 60;
const HEIGHT = 28;

/** Draws how much came in each of the last sixty seconds, of something that only grows. */
export function Sparkline({ total, unit }: { readonly total: number; readonly unit: string }) {
  const newest = useRef(total);
  newest.current = total;
  const [rates, setRates] = useState<readonly number[]>(() => new Array(SECONDS).fill(0));

  useEffect(() => {
    let counted = newest.current;
    const timer = setInterval(() => {
      const now = newest.current;
      const rate = now - counted;
      counted = now;
      setRates((all) => [...all.slice(1), rate]);
    }, 1_000);
    return () => clearInterval(timer);
  }, []);

  const peak = Math.max(4, ...rates);
  const rate = rates.at(-1) ?? 0;
  const bars = rates.map((value, second) => ({ second, height: (value / peak) * HEIGHT }));
  return (
    <figure className="sparkline">
      <svg viewBox={`0 0 ${SECONDS} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {bars.map(({ second, height }) => (
          <rect key={second} x={second + 0.1} y={HEIGHT - height} width={0.8} height={height} />
        ))}
      </svg>
      <figcaption>
        <b>{rate}</b> {unit} in the last second
      </figcaption>
    </figure>
  );
}
