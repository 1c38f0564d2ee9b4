import type { Environment } from './install.ts'

/** A client program, and where its packages are. */
export interface Program {
  /** Below tests/clients. */
  readonly file: string
  readonly environment: Environment
  /** Runs with --heavy only: installing takes minutes or a gigabyte. */
  readonly heavy?: true
}

const KSERVE: Environment = {
  name: 'venv',
  kind: 'python',
  packages: [
    'tritonclient[http,grpc]==2.73.0',
    'kserve==0.21.0',
    'httpx==0.28.1',
    'httpx-sse==0.4.3',
    'openai==3.54.0',
  ],
}

/** In an environment of its own, because it requires other versions than kserve. */
const MLSERVER: Environment = {
  name: 'mlserver',
  kind: 'python',
  packages: ['mlserver==1.7.1', 'httpx==0.28.1', 'httpx-sse==0.4.3'],
}

/** An older openai, which LiteLLM and others require. */
const FRAMEWORKS: Environment = {
  name: 'frameworks',
  kind: 'python',
  packages: [
    'openai==2.54.0',
    'httpx==0.28.1',
    'langchain-openai==1.7.4',
    'llama-index-core==0.14.25',
    'llama-index-llms-openai-like==0.8.1',
    'llama-index-embeddings-openai-like==0.4.0',
    'litellm==1.110.2',
    'instructor==1.17.0',
    'outlines==1.3.3',
    'guidance==0.3.1',
    'pydantic-ai-slim[openai]==2.31.1',
    'openai-agents==0.20.0',
    'haystack-ai==3.4.1',
    'smolagents[openai]==1.26.0',
    'llm==0.32.1',
  ],
}

const LOCUST: Environment = { name: 'locust', kind: 'python', packages: ['locust==2.47.0', 'httpx==0.28.1'] }
const LM_EVAL: Environment = {
  name: 'lm-eval',
  kind: 'python',
  packages: ['lm-eval[api]==0.4.13', 'transformers==5.24.0', 'gguf==0.19.0', 'httpx==0.28.1'],
}
const AIDER: Environment = { name: 'aider', kind: 'python', packages: ['aider-chat==0.86.2'] }
const PROMPTFOO: Environment = { name: 'promptfoo', kind: 'node', packages: ['promptfoo@0.121.20'] }
/** With PyTorch (5 GB), whose loader reads its prompts. */
const GUIDELLM: Environment = { name: 'guidellm', kind: 'python', packages: ['guidellm==0.8.1'] }

const NODE: Environment = {
  name: 'node',
  kind: 'node',
  packages: [
    'openai@6.49.0',
    'ai@6.0.326',
    '@ai-sdk/openai-compatible@2.0.92',
    '@langchain/openai@1.5.8',
    '@langchain/core@1.4.0',
    'zod@4.6.7',
  ],
}

export const PROGRAMS: readonly Program[] = [
  { file: 'python/triton_http.py', environment: KSERVE },
  { file: 'python/triton_grpc.py', environment: KSERVE },
  { file: 'python/mlserver_grpc.py', environment: MLSERVER },
  { file: 'python/mlserver_docs.py', environment: MLSERVER },
  { file: 'python/kserve_client.py', environment: KSERVE },
  { file: 'python/sse.py', environment: KSERVE },
  { file: 'python/seldon.py', environment: KSERVE },
  { file: 'python/openai_client.py', environment: KSERVE },
  { file: 'node/openai_client.mjs', environment: NODE },
  { file: 'node/frameworks.mjs', environment: NODE },
  { file: 'python/frameworks.py', environment: FRAMEWORKS },
  { file: 'python/structured.py', environment: FRAMEWORKS },
  { file: 'python/tool_agents.py', environment: FRAMEWORKS },
  { file: 'python/locust_load.py', environment: LOCUST },
  { file: 'python/lm_eval_task.py', environment: LM_EVAL },
  { file: 'python/guidellm_load.py', environment: GUIDELLM, heavy: true },
  { file: 'python/aider_edit.py', environment: AIDER, heavy: true },
  { file: 'node/promptfoo.mjs', environment: PROMPTFOO, heavy: true },
]
