import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { readLog4j } from '../../frontend/config/log4j.ts'

/** frontend/server/src/main/resources/log4j2.xml of pytorch/serve. */
const TORCHSERVE = readFileSync(new URL('torchserve/log4j2.xml', import.meta.url), 'utf8')
const ALL = 'access_log,ts_log,model_log,ts_metrics,model_metrics'

function keysOf(text: string, env: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(readLog4j(text, env).keys)
}

test('the file of TorchServe is what the server does without one, at the level debug', () => {
  expect(keysOf(TORCHSERVE)).toEqual({
    log_level: 'debug',
    log_console: ALL,
    log_files: `${ALL},audit_log`,
    LOG_LOCATION: 'logs',
    METRICS_LOCATION: 'logs',
  })
  expect(readLog4j(TORCHSERVE, {}).unread).toEqual(['loggers io.netty, org.apache'])
  const env = { LOG_LOCATION: '/var/log/ts', METRICS_LOCATION: '/var/log/metrics' }
  expect(keysOf(TORCHSERVE, env)).toMatchObject(env)
})

test('loggers without additivity, stricter ones, and appenders behind others decide what is where', () => {
  const text = `<?xml version="1.0"?><configuration>
    <properties><property name="dir">/logs</property></properties>
    <appenders>
      <Console name="out"><JsonTemplateLayout/></Console>
      <File name="requests" fileName="\${dir}/requests.log"><PatternLayout pattern="%m%n"/></File>
      <RollingRandomAccessFile name="main" fileName="\${dir}/ts_log.log">
        <Policies><SizeBasedTriggeringPolicy size="10 MB"/></Policies>
      </RollingRandomAccessFile>
      <Async name="later"><AppenderRef ref="out"/></Async>
      <Kafka name="bus" topic="logs"/>
    </appenders>
    <loggers>
      <AsyncLogger name="ACCESS_LOG" level="info" additivity="false"><AppenderRef ref="requests"/></AsyncLogger>
      <Logger name="TS_METRICS" level="off"/>
      <Logger name="MODEL_METRICS" level="error"/>
      <Logger name="MODEL_LOG" level="error"/>
      <Logger name="org.pytorch" level="warn"/>
      <AsyncRoot level="info"><AppenderRef ref="later"/><AppenderRef ref="main"/></AsyncRoot>
    </loggers>
  </configuration>`
  const { keys, unread } = readLog4j(text, {})
  expect(Object.fromEntries(keys)).toEqual({
    log_level: 'warn',
    log_console: 'ts_log,model_log',
    log_files: 'access_log,ts_log,audit_log',
    LOG_LOCATION: '/logs',
  })
  expect([...unread].sort()).toEqual([
    'JsonTemplateLayout of out',
    'PatternLayout of requests',
    'SizeBasedTriggeringPolicy 10 MB of main',
    'appender bus (Kafka)',
    'level error of MODEL_LOG',
    'loggers org.pytorch',
    'the name requests.log of access_log.log',
  ])
})

test('a folder that only Java knows is named', () => {
  const { keys, unread } = readLog4j(
    TORCHSERVE.replaceAll('${env:LOG_LOCATION:-logs}', '${sys:user.home}'),
    {},
  )
  expect(keys.get('LOG_LOCATION')).toBe(undefined)
  expect(unread).toContain('the file name ${sys:user.home}/ts_log.log')
})
