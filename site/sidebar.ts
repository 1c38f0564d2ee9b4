/** The order of the pages in the sidebar. A page that no group names comes last, under "More". */
export interface Group {
  text: string
  collapsed?: boolean
  items: { text: string; link: string }[]
}

const ORDER: readonly (readonly [string, readonly string[]])[] = [
  ['Start', ['index', 'development', 'handlers/testing', 'troubleshooting', 'migrating-from-torchserve']],
  [
    'Handlers',
    [
      'handlers/overview',
      'handlers/function',
      'handlers/class',
      'handlers/stream',
      'handlers/batch',
      'handlers/sequence',
      'handlers/continuous',
      'handlers/open-inference',
      'handlers/openai',
      'handlers/python',
      'handlers/tool-calls',
      'handlers/all-apis',
      'handlers/errors',
      'handlers/workers-and-counters',
      'python-archives',
      'envelopes',
      'workflows',
    ],
  ],
  ['Client APIs', ['protocols', 'open-inference', 'openai', 'grpc', 'torchserve-compatibility']],
  ['Deploy', ['deploying', 'docker', 'helm', 'kubernetes', 'seldon', 'snapshots', 'canary']],
  ['Secure', ['security', 'authorization', 'tls', 'worker-wrapper', 'trusted-archives']],
  [
    'Operate',
    [
      'batching',
      'time-limits',
      'autoscaling',
      'failures',
      'metrics-and-logs',
      'dashboards',
      'tracing',
      'console',
    ],
  ],
  [
    'Reference',
    [
      'configuration',
      'command-line',
      'reference/commands',
      'reference/api/index',
      'reference/api/testing',
      'reference/metrics',
      'reference/errors',
      'handlers/exports',
      'changelog',
    ],
  ],
  [
    'Internals',
    [
      'internals/index',
      'internals/architecture',
      'internals/glossary',
      'internals/promises',
      'internals/attacks',
      'internals/floods',
      'internals/reliability',
      'internals/test-evidence',
      'internals/coverage',
      'internals/conformance',
      'internals/performance',
      'internals/peers',
      'internals/growth',
      'contributing',
      'vulnerabilities',
    ],
  ],
]

/**
 * @param titles of the pages that exist, by their path in the site without `.md`
 * @returns the groups that have a page; pages that are not there are left out
 */
export function sidebar(titles: ReadonlyMap<string, string>): Group[] {
  const named = new Set(ORDER.flatMap(([, pages]) => pages))
  const more = [...titles.keys()].filter((page) => !named.has(page)).sort()
  return [...ORDER, ['More', more] as const]
    .map(([text, pages]) => ({
      text,
      collapsed: text === 'Internals' ? true : undefined,
      items: pages.flatMap((page) => {
        const title = titles.get(page)
        return title === undefined ? [] : [{ text: title, link: `/${page.replace(/(^|\/)index$/, '$1')}` }]
      }),
    }))
    .filter(({ items }) => items.length > 0)
}
