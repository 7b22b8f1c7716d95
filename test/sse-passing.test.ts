import { once } from 'node:events';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { brokerFeed } from '@brokerfeed/trpc';
import { initTRPC, TRPCError, tracked } from '@trpc/server';
import { observable } from '@trpc/server/observable';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { startStreamServer } from './support/event-streams.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED } from './support/router.ts';

interface Answer {
  readonly status: number | undefined;
  readonly headers: object;
  readonly body: string;
}

interface Question {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

async function ask(
  url: string,
  { method = 'GET', path, headers, body }: Question,
): Promise<Answer> {
  const asked = request(url + path, { method, headers: { ...headers }, agent: false });
  asked.end(body);
  const [response] = await once(asked, 'response');
  const { date: _date, ...rest } = response.headers;
  return { status: response.statusCode, headers: rest, body: await text(response) };
}

const JSON_BODY = { 'content-type': 'application/json' };
const input = (value: unknown): string => `input=${encodeURIComponent(JSON.stringify(value))}`;

/** All that a handler may be asked, but for a feed that stands. */
const QUESTIONS: Record<string, Question> = {
  'a query': { path: `/hello?${input('you')}` },
  'a query with a bad input': { path: `/hello?${input(1)}` },
  'a query that throws': { path: '/fails' },
  'a mutation': { method: 'POST', path: '/save', headers: JSON_BODY, body: '{"n":1}' },
  'a mutation by GET': { path: `/save?${input({ n: 1 })}` },
  'a batch': { path: `/hello,hello,fails?batch=1&${input({ 0: 'a', 1: 'b' })}` },
  'a batch as a stream': {
    path: `/hello,list?batch=1&${input({ 0: 'a' })}`,
    headers: { 'trpc-accept': 'application/jsonl' },
  },
  'a subscription in a batch': { path: `/count,hello?batch=1&${input({ 1: 'b' })}` },
  'a feed in a batch': { path: '/feed?batch=1' },
  'a procedure that is not there': { path: '/nothing' },
  'a body that is no JSON': { method: 'POST', path: '/save', headers: JSON_BODY, body: '{' },
  'a head': { method: 'HEAD', path: '/hello' },
  'a feed by POST': { method: 'POST', path: '/feed' },
  'a feed that is refused': { path: `/feed?${input({ lastEventId: 'none of ours' })}` },
  'a feed whose topic is refused': { path: '/forbidden' },
  'a feed without a context': { path: '/feed?fail' },
  'a subscription': { path: '/count' },
  'a subscription that resumes': { path: '/count', headers: { 'last-event-id': '1' } },
  'a subscription without ids': { path: '/plain', headers: { 'last-event-id': '1' } },
  'a subscription that throws at once': { path: '/throws' },
  'a subscription that throws': { path: '/throwsLater' },
  'a subscription to an observable': { path: '/observed' },
  'a subscription to what cannot be iterated': { path: '/wrong' },
};

test.each(Object.entries(QUESTIONS))('%s is answered as by tRPC alone', async (_name, question) => {
  await using broker = observedBroker();
  const t = initTRPC.context<{ readonly n: number }>().create({ isDev: false });
  const teapot = (): never => {
    throw new TRPCError({ code: 'FORBIDDEN', message: 'not you' });
  };
  const router = t.router({
    hello: t.procedure.input(z.string()).query(({ input: name, ctx }) => `${name} ${ctx.n}`),
    list: t.procedure.query(async function* () {
      yield* [1, 2];
    }),
    fails: t.procedure.query(teapot),
    save: t.procedure.input(z.object({ n: z.number() })).mutation(({ input: { n } }) => n),
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    forbidden: t.procedure.subscription(brokerFeed(broker, teapot, SIGNED)),
    count: t.procedure
      .input(z.object({ lastEventId: z.string() }).optional())
      .subscription(async function* ({ input: from }) {
        for (let n = Number(from?.lastEventId ?? 0); n < 5; n += 1) yield tracked(`${n + 1}`, n);
      }),
    plain: t.procedure.subscription(async function* () {
      yield tracked('a', 1);
      yield 'no id';
    }),
    throws: t.procedure.subscription(teapot),
    throwsLater: t.procedure.subscription(async function* () {
      yield 1;
      teapot();
    }),
    observed: t.procedure.subscription(() =>
      observable<number>((observer) => {
        observer.next(1);
        observer.complete();
      }),
    ),
    wrong: t.procedure.subscription((() => 1) as never),
  });
  const answers: Answer[] = [];
  const told: unknown[][] = [];
  for (const feeds of [true, false]) {
    const errors: unknown[] = [];
    told.push(errors);
    await using server = await startStreamServer(router, {
      feeds,
      handler: {
        createContext: ({ req }) => {
          if (req.url?.includes('fail')) teapot();
          return { n: 1 };
        },
        responseMeta: ({ type, paths, info, eagerGeneration }) => {
          const procedure = info?.calls[0]?.procedure?._def.type ?? 'none';
          const headers = { 'x-type': `${type} ${paths} ${procedure} ${eagerGeneration}` };
          return { headers: new Headers(headers) };
        },
        onError: ({ error, path, type, ctx, input: given }) => {
          errors.push([error.code, error.message, path, type, ctx, given]);
        },
      },
    });
    answers.push(await ask(server.httpUrl, question));
  }
  expect(answers[0]).toEqual(answers[1]);
  expect(told[0]).toEqual(told[1]);
});
