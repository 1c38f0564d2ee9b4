/** Where each command and handler of the documentation runs, or why it does not. */

/** Blocks that another test runs, by page: the file that does it must name the page. */
export const RUN_BY: Readonly<Record<string, string>> = {
  'README.md': 'tests/examples/readme.test.ts',
  'docs/authorization.md': 'tests/docs/commands.test.ts',
  'docs/batching.md': 'tests/examples/batching-doc.test.ts',
  'docs/canary.md': 'tests/docs/canary.test.ts',
  'docs/deploying.md': 'tests/docs/commands.test.ts',
  'docs/grpc.md': 'tests/docs/grpc-clients.test.ts',
  'docs/migrating-from-torchserve.md': 'tests/examples/migration.test.ts',
  'docs/open-inference.md': 'tests/docs/commands.test.ts',
  'docs/tls.md': 'tests/docs/commands.test.ts',
  'docs/workflows.md': 'tests/examples/workflow.test.ts',
}

/** Blocks with these words run in no test, for this reason. They come before {@link RUN_BY}. */
export const NOT_RUN: readonly (readonly [words: string, reason: string])[] = [
  [
    'cd torchserve-ts && npm ci && npm pack',
    'clones the repository; tests/e2e/package.test.ts packs and installs',
  ],
  [
    '/predictions/my-model',
    'needs the project of the block before; tests/e2e/project.test.ts asks such projects',
  ],
  [
    '/v2/models/my-onnx',
    'needs the project of the block before; tests/e2e/project.test.ts asks such projects',
  ],
  [
    '/predictions/my-python',
    'needs the project of the block before; tests/e2e/project.test.ts asks such projects',
  ],
  ['"model": "gemma-3-270m-it-Q8_0"', 'needs a model of 291 MB; npm run test:gemma asks it'],
  [
    '--start --no-config-snapshots',
    'has every model of a store; tests/e2e/snapshots.test.ts starts with --ncs',
  ],
  ['docker compose', 'needs a container engine; the page says that nobody started it'],
  ['serve model.gguf', 'stays in the foreground; tests/cli/serve-model.test.ts serves such files'],
  [
    'curl http://127.0.0.1:8082/metrics',
    'needs a server with the port of metrics; tests/e2e/metrics.test.ts reads it',
  ],
  ['docker build', 'needs a container engine; npm run test:image executes the steps of the image'],
  ['docker run', 'needs a container engine; npm run test:image starts a server in the image'],
  ['docker stop', 'needs a container engine; npm run test:image stops a server in the image'],
  ['--file store/keys.json', 'the same as in docs/authorization.md, which tests/docs/commands.test.ts runs'],
  ['npm ci && npm run demo', 'tests/examples/demo.test.ts runs the demo; its figures differ by machine'],
  [
    'DELETE http://127.0.0.1:8081/requests',
    'needs an open request; tests/e2e/cancel-requests.test.ts has some',
  ],
  ['# as-user USER', 'is a script; tests/e2e/wrapper-recipes.test.ts runs it'],
  ['npm ci && npm test', '.ci/run reads this command from README.md and runs it'],
  ['git clone https://github.com/torchserve-ts', 'clones this repository; .ci/run has the other commands'],
  ['npm test -- tests/e2e/streaming', 'would run tests within a test'],
  ['--cert batch.pem', 'needs certificates of its own; tests/auth and tests/e2e/tls have such clients'],
  ['torchserve-ts --start --model-store model_store --models all', 'tests/cli/background.test.ts starts so'],
  [
    'torchserve-ts serve ggml-org',
    'downloads 291 MB; tests/cli/serve-model.test.ts serves from a hub of its own',
  ],
  ['npx torchserve-ts init', 'installs from the registry; tests/e2e/project.test.ts makes all the projects'],
  [
    'torchserve-ts dev my-model',
    'its ports differ each time; tests/e2e/dev.test.ts and project.test.ts read them',
  ],
  [
    'kubectl create configmap',
    'needs a cluster; tests/e2e/seldon.test.ts starts with the files of deploy/seldon',
  ],
  [
    'kubectl apply -f deploy/kserve/pytorch-runtime.yaml',
    'needs a cluster; tests/deploy/kserve/pytorch.test.ts starts what KServe makes of it',
  ],
  ['helm install', 'needs a cluster; npm run test:manifests renders the chart with the code of Helm'],
  ['/events?topics=overview,requests', 'ends when its reader leaves; tests/e2e/events.test.ts reads it'],
  ['/console/play/predictions/echo', 'needs a server with models; tests/e2e/playground.test.ts asks there'],
  ['torchserve-ts migrate ', 'shows another folder; tests/cli/migrate.test.ts follows what it prints'],
  ['torchserve-ts status\n', 'its numbers differ each time; tests/cli/servers.test.ts reads them'],
  ['npm run test:torchserve', 'needs a checkout of pytorch/serve; .ci/run runs a part'],
  ['npm run test:clients', 'installs 1.8 GB; .ci/run runs it'],
  ['npm run conformance', 'tests/e2e/conformance.test.ts runs the suite against this server'],
  [
    'pip install torchserve torch',
    'installs 5 GB; tests/python starts such archives, with a stand-in for PyTorch',
  ],
  ['OTEL_EXPORTER_OTLP_ENDPOINT=', 'needs a collector; tests/e2e/tracing.test.ts has one of its own'],
  ['npm run soak', 'takes half an hour; .ci/run runs two minutes'],
  ['npm run fuzz', 'takes half an hour; .ci/run runs a minute'],
  ['-d delay=200 -d id=mine', 'takes minutes; tests/model-store/count.test.ts has such requests'],
  ['apt-get install bible-kjv', 'trains a model for 40 minutes'],
  ['npm run heldout-loss', 'needs the text of a Debian package'],
]

/** Blocks in TypeScript with these words are not checked and loaded as handlers are. */
export const NOT_LOADED: readonly (readonly [words: string, reason: string])[] = [
  ["import OpenAI from 'openai'", 'a client, whose package is installed only by npm run test:clients'],
  [
    "from '@opentelemetry/api'",
    'needs a package that a handler brings; tests/e2e/tracing.test.ts has the header',
  ],
]
