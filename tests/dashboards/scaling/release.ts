import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { PropertiesEditor } from 'properties-file/editor'
import type { Content } from '../../deploy/chart-objects.ts'

type Labels = Record<string, string>
interface Service extends Content {
  metadata: { name: string; labels: Labels }
  spec: { selector: Labels; ports: { name: string }[] } & Content['spec']
}
interface Monitor extends Content {
  spec: {
    selector: { matchLabels: Labels }
    endpoints: {
      port: string
      path: string
      authorization?: { credentials: { name: string; key: string } }
    }[]
  } & Content['spec']
}

/** A server that stands for a pod of the release. */
export interface Pod {
  readonly name: string
  /** Of the container's ports, by their names in the chart. */
  readonly ports: ReadonlyMap<string, number>
}

/** The namespace that the chart's test program renders for. */
export const NAMESPACE = 'models'

/** What a rendered release says to its servers and to Prometheus. */
export class Release {
  readonly #objects: readonly Content[]

  constructor(objects: readonly Content[]) {
    this.#objects = objects
  }

  /** The keys of config.properties, with the key file written below `folder`. */
  config(folder: string): Record<string, string> {
    const text = this.#find('ConfigMap', (each) => each.data?.['config.properties'] !== undefined)
    const properties = new PropertiesEditor(text.data!['config.properties']!).toObject()
    const file = join(folder, 'keys.yaml')
    writeFileSync(file, this.secret('keys.yaml'), { mode: 0o600 })
    return { ...properties, api_keys_file: file }
  }

  /** A value of the release's Secret. */
  secret(key: string): string {
    return this.#find('Secret', () => true).stringData![key]!
  }

  /**
   * What the Prometheus Operator makes of the ServiceMonitor, for the endpoints that Kubernetes makes of the
   * Services: one target for each port of each pod, of which the ServiceMonitor keeps some.
   */
  scrape(pods: readonly Pod[]): object {
    const { metadata, spec } = this.#find('ServiceMonitor', () => true) as Monitor
    const [{ port, path, authorization } = { port: '', path: '' }] = spec.endpoints
    const credentials = authorization === undefined ? undefined : this.secret(authorization.credentials.key)
    return {
      job_name: `serviceMonitor/${NAMESPACE}/${metadata.name}/0`,
      metrics_path: path,
      ...(credentials === undefined ? {} : { authorization: { credentials } }),
      static_configs: this.#services().flatMap((service) => endpointsOf(service, pods)),
      relabel_configs: relabelings(spec.selector.matchLabels, port),
    }
  }

  #services(): Service[] {
    const labels = this.#objects.find(({ spec }) => spec?.template !== undefined)!.spec!.template!.metadata
      .labels
    const services = this.#objects.filter(({ kind }) => kind === 'Service') as Service[]
    return services.filter(({ spec }) =>
      Object.entries(spec.selector).every(([name, value]) => labels[name] === value),
    )
  }

  #find(kind: string, isIt: (object: Content) => boolean): Content {
    const found = this.#objects.find((each) => each.kind === kind && isIt(each))
    if (found === undefined) throw new Error(`The release has no ${kind}`)
    return found
  }
}

/** The targets of one Service, with the labels of Prometheus' discovery of endpoints. */
function endpointsOf({ metadata, spec }: Service, pods: readonly Pod[]): object[] {
  const labels = Object.entries(metadata.labels).flatMap(([name, value]) => [
    [`__meta_kubernetes_service_label_${metaName(name)}`, value],
    [`__meta_kubernetes_service_labelpresent_${metaName(name)}`, 'true'],
  ])
  return spec.ports.flatMap(({ name: port }) =>
    pods.map(({ name, ports }) => ({
      targets: [`127.0.0.1:${ports.get(port)}`],
      labels: {
        ...(Object.fromEntries(labels) as Labels),
        __meta_kubernetes_namespace: NAMESPACE,
        __meta_kubernetes_service_name: metadata.name,
        __meta_kubernetes_endpoint_port_name: port,
        __meta_kubernetes_pod_name: name,
      },
    })),
  )
}

/** As the Prometheus Operator relabels the endpoints of a ServiceMonitor. */
function relabelings(selector: Labels, port: string): object[] {
  const meta = (name: string): string => `__meta_kubernetes_${name}`
  const selected = Object.entries(selector).map(([name, value]) => ({
    action: 'keep',
    source_labels: [meta(`service_label_${metaName(name)}`), meta(`service_labelpresent_${metaName(name)}`)],
    regex: `(${value});true`,
  }))
  const taken = (
    [
      ['namespace', 'namespace'],
      ['service_name', 'service'],
      ['pod_name', 'pod'],
      ['service_name', 'job'],
      ['endpoint_port_name', 'endpoint'],
    ] as const
  ).map(([source, target]) => ({ source_labels: [meta(source)], target_label: target }))
  return [...selected, { action: 'keep', source_labels: [meta('endpoint_port_name')], regex: port }, ...taken]
}

function metaName(label: string): string {
  return label.replaceAll(/\W/g, '_')
}
