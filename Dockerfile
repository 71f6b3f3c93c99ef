# The command textsim, for a PostgreSQL that runs elsewhere. TEXTSIM_DATABASE_URL is its address.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --constraint constraints.txt --wheel-dir /wheels '.[embedded,languages,mcp,prometheus,review]'

# The kernels, compiled for processors from 2013 on. Numba compares sources by content and finds the package
# at the same path, so they work in the image below. Elsewhere they are compiled at first use.
FROM python:3.13-slim AS kernels
RUN --mount=from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'textsim-db[embedded,languages,mcp,prometheus,review]'
ENV NUMBA_CACHE_DIR=/kernels NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=
RUN mkdir /kernels && if grep -qw avx2 /proc/cpuinfo; then \
    textsim warm || echo 'no kernels in this image: they are compiled at first use'; fi

FROM python:3.13-slim
RUN --mount=from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'textsim-db[languages,mcp,prometheus,review]'
COPY --from=kernels /kernels /kernels
COPY --chmod=755 <<'END' /usr/local/bin/textsim-in-container
#!/bin/sh
# Kernels of the image are newer than those that an older image left in the volume.
mkdir -p "$NUMBA_CACHE_DIR" && cp -ru /kernels/. "$NUMBA_CACHE_DIR" 2>/dev/null
if grep -qw avx2 /proc/cpuinfo; then
    export NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=
fi
exec textsim "$@"
END
RUN useradd --system --create-home textsim && mkdir -p /home/textsim/.cache/numba && \
    chown -R textsim /home/textsim/.cache
USER textsim
# This user cannot write to the installed package.
ENV NUMBA_CACHE_DIR=/home/textsim/.cache/numba
WORKDIR /home/textsim
STOPSIGNAL SIGTERM
# What a worker with --metrics-port 9464 answers. Other servers of the image have another address.
ENV TEXTSIM_HEALTH_URL=http://127.0.0.1:9464/healthz
HEALTHCHECK --interval=10s --timeout=10s --start-period=2m --start-interval=1s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(os.environ['TEXTSIM_HEALTH_URL'], timeout=5)"]
ENTRYPOINT ["textsim-in-container"]
CMD ["--help"]
