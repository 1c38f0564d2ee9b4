# For Python archives: the server of the image torchserve-ts in an image that has TorchServe's Python environment.
# First build the image of the Dockerfile beside this file, then:
#   docker build -f deploy/container/python.Dockerfile -t torchserve-ts-python deploy/container
# Where your models need more packages, name the image that you ran TorchServe from:
#   --build-arg PYTHON_IMAGE=my/torchserve:latest
ARG PYTHON_IMAGE=pytorch/torchserve:0.12.0-cpu
FROM torchserve-ts:latest AS server

FROM ${PYTHON_IMAGE}
WORKDIR /opt/torchserve-ts
COPY --from=server /usr/local/bin/node /usr/local/bin/node
COPY --from=server /opt/torchserve-ts ./
# The only place that the server writes to.
ENV LOG_LOCATION=/tmp/logs METRICS_LOCATION=/tmp/logs TEMP=/tmp
USER 1000
EXPOSE 8080 9000 8082
ENTRYPOINT ["node", "/opt/torchserve-ts/dist/frontend/cli.js", "--start", "--foreground", "--ncs"]
CMD ["--ts-config", "/opt/torchserve-ts/kserve.properties"]
