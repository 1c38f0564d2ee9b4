import { setOwn } from '../../common/own-keys.ts'

/** Variables of the system, and what libraries read. `*` stands for any ending. Not secrets: see `SECRET`. */
const USUAL = [
  ...[
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'SHELL',
    'HOSTNAME',
    'TERM',
    'LANG',
    'LANGUAGE',
    'LC_*',
    'TZ',
    'TZDIR',
  ],
  ...['TMPDIR', 'TMP', 'TEMP', 'XDG_*', 'LD_*', 'DYLD_*', 'MALLOC_*', 'UV_THREADPOOL_SIZE', 'LOGLEVEL'],
  ...['SystemRoot', 'SYSTEMROOT', 'windir', 'COMSPEC', 'PATHEXT', 'APPDATA', 'LOCALAPPDATA', 'USERPROFILE'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'],
  ...[
    'http_proxy',
    'https_proxy',
    'all_proxy',
    'no_proxy',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'NO_PROXY',
  ],
  ...['NODE_*', 'PYTHON*', 'VIRTUAL_ENV', 'CONDA_*', 'MPLCONFIGDIR', 'MPLBACKEND'],
  ...['CUDA_*', 'CUBLAS_*', 'CUDNN_*', 'NVIDIA_*', 'NCCL_*', 'GLOO_*', 'ROCM_*', 'ROCR_*', 'HIP_*', 'HSA_*'],
  ...[
    'OMP_*',
    'KMP_*',
    'GOMP_*',
    'MKL_*',
    'DNNL_*',
    'ONEDNN_*',
    'OPENBLAS_*',
    'BLIS_*',
    'NUMEXPR_*',
    'NUMBA_*',
  ],
  ...['TORCH*', 'PYTORCH_*', 'TF_*', 'XLA_*', 'JAX_*', 'ORT_*', 'NEURON_*', 'IPEX_*', 'TRITON_*', 'VLLM_*'],
  ...['HF_*', 'HUGGINGFACE_*', 'TRANSFORMERS_*', 'TOKENIZERS_*', 'SENTENCE_TRANSFORMERS_*', 'DIFFUSERS_*'],
  ...['GGML_*', 'LLAMA_*', 'NODE_LLAMA_CPP_*', 'OPENCV_*'],
]

/** Such names are never inherited by an ending: HF_TOKEN has to be named. */
const SECRET = /(^|_)(TOKEN|SECRET|PASS|PASSWORD|PASSWD|CREDENTIALS?|AUTH|KEY|APIKEY)(_|$)/i

/** A proxy's address with a password in it. */
const WITH_PASSWORD = /^\w+:\/\/[^/]*@/

/** Whether one of the names, or beginnings that end with `*`, fits. A single `*` fits everything. */
export function fitsName(name: string, names: readonly string[]): boolean {
  return names.some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : each === name))
}

/**
 * The environment of processes that run a model's code: the usual variables of the server's environment, and
 * the ones that the operator named, without `blacklist_env_vars`. @param named a single `*`: all of them
 */
export function inheritedEnv(
  blacklist: RegExp | undefined,
  named: readonly string[],
): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || blacklist?.test(name) === true) continue
    if (fitsName(name, named) || isUsual(name, value)) setOwn(env, name, value)
  }
  return env
}

/** Variables of the server's environment that `inheritedEnv` leaves out, though nobody blacklisted them. */
export function withheldEnv(blacklist: RegExp | undefined, named: readonly string[]): string[] {
  const given = new Set(Object.keys(inheritedEnv(blacklist, named)))
  return Object.keys(process.env).filter((name) => !given.has(name) && blacklist?.test(name) !== true)
}

function isUsual(name: string, value: string): boolean {
  return fitsName(name, USUAL) && !SECRET.test(name) && !WITH_PASSWORD.test(value)
}
