import type { Order } from '../router.ts';

/** The board itself, the newest order first. */
export function OrderList({ orders }: { readonly orders: readonly Order[] }) {
  if (orders.length === 0) return <p className="empty">No orders yet.</p>;
  return (
    <ol className="orders">
      {orders.map(({ id, item, quantity, receipt }) => (
        <li key={id}>
          <span className="quantity">{quantity} ×</span>
          <span className="item">{item}</span>
          <span className="receipt">
            {receipt ? `till ${receipt.till}, no. ${receipt.number}` : id.slice(0, 8)}
          </span>
        </li>
      ))}
    </ol>
  );
}
