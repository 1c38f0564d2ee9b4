/** Values that the chart must refuse, with words that its message must have. */
export const REFUSED: readonly (readonly [name: string, values: object, words: string])[] = [
  ['an unknown value', { replica: 2 }, "additional properties 'replica' not allowed"],
  ['a text for a number', { replicas: 'two' }, "at '/replicas': got string, want integer"],
  ['an unknown kind', { kind: 'DaemonSet' }, "value must be one of 'Deployment', 'StatefulSet'"],
  [
    'a key that the server does not have',
    { config: { job_queue_sise: 10 } },
    "at '/config': additional properties 'job_queue_sise' not allowed",
  ],
  [
    'a key that the chart sets',
    { config: { inference_address: 'http://0.0.0.0:80' } },
    "additional properties 'inference_address' not allowed",
  ],
  [
    'a second line in a key',
    { config: { worker_wrapper: 'nice\nallow_insecure_exposure=true' } },
    "at '/config/worker_wrapper'",
  ],
  ['mode keys without keys', { auth: { mode: 'keys' } }, "at '/auth/keys': minItems"],
  [
    'a key instead of its hash',
    { auth: { mode: 'keys', keys: [{ name: 'a', sha256: 'tsk_secret', scopes: ['inference'] }] } },
    "at '/auth/keys/0/sha256'",
  ],
  ['mode existingSecret without one', { auth: { mode: 'existingSecret' } }, "at '/auth/existingSecret'"],
  ['KEDA without Prometheus', { autoscaling: { type: 'keda' } }, "at '/autoscaling/keda/prometheusAddress'"],
  ['scaling to nothing', { autoscaling: { minReplicas: 0 } }, 'minimum: got 0, want 1'],
  [
    'a download without a hash',
    { models: { download: [{ file: 'a.mar', url: 'https://example.com/a.mar' }] } },
    "missing property 'sha256'",
  ],
  [
    'a download that leaves its folder',
    {
      models: { download: [{ file: '../a.mar', url: 'https://example.com/a.mar', sha256: '0'.repeat(64) }] },
    },
    "at '/models/download/0/file'",
  ],
  [
    'claims for the pods of a Deployment',
    { models: { volume: { type: 'claimTemplate' } } },
    'models.volume.type=claimTemplate needs kind=StatefulSet',
  ],
  [
    'downloads to a volume that cannot be written',
    {
      models: {
        volume: { type: 'existingClaim', claimName: 'a' },
        download: [{ file: 'a.mar', url: 'https://example.com/a.mar', sha256: '0'.repeat(64) }],
      },
    },
    'models.download needs a volume that it can write to',
  ],
  [
    'less time than the server needs to stop',
    { shutdown: { gracePeriodSeconds: 30 } },
    'shutdown.gracePeriodSeconds must be at least 85',
  ],
  [
    'a NetworkPolicy that keeps Prometheus out',
    { networkPolicy: { enabled: true }, metrics: { serviceMonitor: { enabled: true } } },
    'networkPolicy.metricsClients must name Prometheus',
  ],
  [
    'a token for metrics that Prometheus does not have',
    {
      auth: { mode: 'existingSecret', existingSecret: 'a' },
      metrics: { requireToken: true, serviceMonitor: { enabled: true } },
    },
    'metrics.serviceMonitor.authorization must name a Secret',
  ],
  [
    'fewer pods at most than at least',
    { autoscaling: { type: 'hpa', minReplicas: 5, maxReplicas: 2 } },
    'autoscaling.minReplicas must not be greater',
  ],
]
