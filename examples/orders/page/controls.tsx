import { useState } from 'react';
import { Till } from './till.ts';

const till = new Till();

/** What somebody who watches can do: place orders, and end a server. */
export function Controls() {
  const [isBusy, setBusy] = useState(false);
  const [note, setNote] = useState('');

  function rush(): void {
    till.isBusy = !isBusy;
    setBusy(!isBusy);
  }

  async function kill(): Promise<void> {
    setNote('');
    try {
      // Which one is the proxy's choice: it need not be the one that a client follows.
      const response = await fetch('/demo/kill', { method: 'POST' });
      setNote(`Killed ${await response.text()}.`);
    } catch {
      setNote('No server is there to be killed.');
    }
  }

  return (
    <div className="controls">
      <button type="button" className="main" onClick={() => void till.place()}>
        Place an order
      </button>
      <button type="button" aria-pressed={isBusy} onClick={rush}>
        Rush hour
      </button>
      <button
        type="button"
        className="danger"
        title="Ends the server process as a crash would"
        onClick={() => void kill()}
      >
        Kill the server
      </button>
      <p role="status">{note}</p>
    </div>
  );
}
