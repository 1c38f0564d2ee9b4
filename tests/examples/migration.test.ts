import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { packPython } from '../support/python/archive.ts'
import { describePython } from '../support/python/test-python.ts'
import { freePorts } from '../support/ports.ts'
import { CLI, REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const GUIDE = readFileSync(join(REPOSITORY, 'docs', 'migrating-from-torchserve.md'), 'utf8')
const COMMANDS = [...GUIDE.matchAll(/^```sh\n(.*?)^```/gms)].map((match) => match[1]!)

const HANDLER = `def handle(data, context):
    return None if data is None else [{"length": len(row["body"]["text"])} for row in data]
`

await describePython('the migration guide', (python) => {
  const folder = tempDir()
  const bin = join(folder, 'commands')
  const env = {
    ...process.env,
    NODE_OPTIONS: '',
    PATH: [bin, python.bin, process.env['PATH']].join(delimiter),
    TEMP: join(folder, 'tmp'),
    TMPDIR: join(folder, 'tmp'),
  }

  afterAll(async () => {
    await execa('torchserve-ts', ['--stop'], { cwd: folder, env, reject: false })
  })

  test('every command works, one after the other, in a folder of TorchServe', async () => {
    mkdirSync(bin)
    mkdirSync(join(folder, 'tmp'))
    writeFileSync(join(bin, 'torchserve-ts'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`, {
      mode: 0o755,
    })
    symlinkSync(process.execPath, join(bin, 'node'))
    const ports = await freePorts(5)
    writeFileSync(join(folder, 'config.properties'), configuration(ports))
    await packPython(python, join(folder, 'model_store'), {
      ...{
        name: 'my',
        handler: HANDLER,
        config: 'minWorkers: 1\nmaxWorkers: 1\nbatchSize: 4\nmaxBatchDelay: 50\n',
      },
    })
    let output = ''
    for (const command of COMMANDS) output += await run(command, ports)
    expect(output).toContain('The archive runs here.')
    expect(output).toContain('The configuration can be used.')
    expect(output).toContain('Model server started.')
    expect(output).toContain('"length": 5')
    expect(output).toContain('"status": "Healthy"')
    expect(existsSync(join(folder, 'tmp', '.model_server.pid'))).toBe(false)
  })

  async function run(command: string, [inference, management]: readonly number[]): Promise<string> {
    const here = command.replaceAll(':8080/', `:${inference}/`).replaceAll(':8081/', `:${management}/`)
    // A file, because the server that a command starts keeps its stdout and stderr.
    const said = join(folder, 'said.log')
    const script = `exec > "$0" 2>&1\n${here}`
    await execa('bash', ['-e', '-c', script, said], { cwd: folder, env, stdio: 'ignore' })
    return readFileSync(said, 'utf8')
  }
})

function configuration([inference, management, metrics, grpc, grpcManagement]: readonly number[]): string {
  return [
    '# TorchServe on an ordinary machine',
    `inference_address=http://127.0.0.1:${inference}`,
    `management_address=http://127.0.0.1:${management}`,
    `metrics_address=http://127.0.0.1:${metrics}`,
    `grpc_inference_port=${grpc}`,
    `grpc_management_port=${grpcManagement}`,
    'number_of_netty_threads=32',
    'vmargs=-Xmx1g',
    'install_py_dep_per_model=true',
    '',
  ].join('\n')
}
