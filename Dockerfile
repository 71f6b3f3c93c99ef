# The command textsim, for a PostgreSQL that runs elsewhere. TEXTSIM_DATABASE_URL is its address.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --constraint constraints.txt --wheel-dir /wheels '.[languages,prometheus]'

FROM python:3.13-slim
RUN --mount=from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'textsim-db[languages,prometheus]'
RUN useradd --system --create-home textsim
USER textsim
# Kernels are compiled at first use. This user cannot write to the installed package.
ENV NUMBA_CACHE_DIR=/home/textsim/.cache/numba
WORKDIR /home/textsim
STOPSIGNAL SIGTERM
ENTRYPOINT ["textsim"]
CMD ["--help"]
