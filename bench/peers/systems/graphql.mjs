import { GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import graphqlRedis from 'graphql-redis-subscriptions';
import { useServer } from 'graphql-ws/use/ws';
import { listenWs } from '../lib/http.mjs';
import { connect } from '../lib/streams.mjs';

const channelOf = (topic) => `orders:${topic}`;
const text = { type: new GraphQLNonNull(GraphQLString) };

const Order = new GraphQLObjectType({ name: 'Order', fields: { seq: text, pad: text } });
const Query = new GraphQLObjectType({ name: 'Query', fields: { ok: text } });

/** graphql-ws over Redis pub/sub: nothing is kept, so nothing is resumed. */
export const system = {
  async start(redisUrl) {
    const pubsub = new graphqlRedis.RedisPubSub({
      publisher: connect(redisUrl),
      subscriber: connect(redisUrl),
    });
    const orders = {
      type: Order,
      args: { topic: text },
      subscribe: (_root, { topic }) => pubsub.asyncIterableIterator(channelOf(topic)),
      resolve: (order) => order,
    };
    const Subscription = new GraphQLObjectType({ name: 'Subscription', fields: { orders } });
    const schema = new GraphQLSchema({ query: Query, subscription: Subscription });
    const { wss, url } = await listenWs({ handleProtocols: () => 'graphql-transport-ws' });
    useServer({ schema }, wss);
    return url;
  },
  publisher(redisUrl) {
    const redis = connect(redisUrl);
    return { publish: (topic, order) => redis.publish(channelOf(topic), order) };
  },
  wire: {
    transport: 'ws',
    protocol: 'graphql-transport-ws',
    open: () => '{"type":"connection_init"}',
    control(message, { topic }) {
      if (!message.includes('connection_ack')) throw new Error(message);
      const query = 'subscription($topic:String!){orders(topic:$topic){seq pad}}';
      const payload = { query, variables: { topic } };
      return { send: JSON.stringify({ id: '1', type: 'subscribe', payload }), ready: true };
    },
    tokenOf: () => '',
  },
};
