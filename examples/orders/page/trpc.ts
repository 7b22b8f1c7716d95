import { createTRPCContext } from '@trpc/tanstack-react-query';
import type { OrdersRouter } from '../router.ts';

export const { TRPCProvider, useTRPC } = createTRPCContext<OrdersRouter>();
