"""The tables of `index.db` and `state.db` (spec `retrieval` §2), as numbered migrations.

A migration is a name and the statements that bring a database from the one before it to it. A
published migration is never changed; a new one is added below it.
"""

from __future__ import annotations

INDEX_MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "0001-memories",
        (
            # An id of its own, because the full-text table points at rows by number and a vacuum
            # may renumber rows that have none.
            "CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,"
            " blob_sha TEXT NOT NULL, content_hash TEXT NOT NULL, memory_type TEXT NOT NULL,"
            " title TEXT NOT NULL, gist TEXT NOT NULL, para TEXT NOT NULL, workspace TEXT,"
            " confidence REAL NOT NULL DEFAULT 1.0, importance INTEGER NOT NULL DEFAULT 5,"
            " archived INTEGER NOT NULL, origin_path TEXT, word_count INTEGER NOT NULL,"
            " char_count INTEGER NOT NULL,"
            " created_at TEXT NOT NULL, updated_at TEXT NOT NULL, archived_at TEXT,"
            " valid_from TEXT, valid_until TEXT, event_at TEXT,"
            " reprieves INTEGER NOT NULL DEFAULT 0, needs_revision INTEGER NOT NULL DEFAULT 0,"
            " author TEXT NOT NULL DEFAULT 'agent', session_id TEXT, prompt_id TEXT,"
            " turn_uuid TEXT, task_status TEXT, due_at TEXT, frame_key TEXT,"
            " indexed_at TEXT NOT NULL,"
            # The long texts come last, so that a look-up need not walk their overflow pages.
            " disclosure_text TEXT NOT NULL, body_text TEXT NOT NULL, fts_text TEXT NOT NULL)",
            "CREATE TABLE file_tags(path TEXT NOT NULL REFERENCES files(path) ON DELETE CASCADE"
            " ON UPDATE CASCADE, tag TEXT NOT NULL, PRIMARY KEY(path, tag)) WITHOUT ROWID",
            "CREATE TABLE file_entities(path TEXT NOT NULL REFERENCES files(path)"
            " ON DELETE CASCADE ON UPDATE CASCADE, entity_type TEXT NOT NULL,"
            " entity_name TEXT NOT NULL, PRIMARY KEY(path, entity_type, entity_name))"
            " WITHOUT ROWID",
            "CREATE TABLE file_facets(path TEXT NOT NULL REFERENCES files(path) ON DELETE CASCADE"
            " ON UPDATE CASCADE, name TEXT NOT NULL, value TEXT NOT NULL, numeric_value REAL)",
            "CREATE TABLE file_citations(path TEXT NOT NULL REFERENCES files(path)"
            " ON DELETE CASCADE ON UPDATE CASCADE, text TEXT NOT NULL, href TEXT)",
            "CREATE TABLE chunks(path TEXT NOT NULL REFERENCES files(path) ON DELETE CASCADE"
            " ON UPDATE CASCADE, ordinal INTEGER NOT NULL, chunk_id TEXT NOT NULL,"
            " content_hash TEXT NOT NULL, text TEXT NOT NULL, char_count INTEGER NOT NULL,"
            " PRIMARY KEY(path, ordinal)) WITHOUT ROWID",
            "CREATE TABLE embeddings(chunk_id TEXT PRIMARY KEY, model TEXT NOT NULL,"
            " dim INTEGER NOT NULL, vec BLOB NOT NULL, created_at TEXT NOT NULL)",
            "CREATE TABLE edges(src_path TEXT NOT NULL, rel TEXT NOT NULL, dst_path TEXT NOT NULL,"
            " edge_class TEXT NOT NULL, derived INTEGER NOT NULL DEFAULT 0,"
            " strength REAL NOT NULL DEFAULT 1.0, provenance TEXT NOT NULL DEFAULT 'authored',"
            " src_hash TEXT, dst_hash TEXT, created_at TEXT NOT NULL,"
            " PRIMARY KEY(src_path, rel, dst_path), CHECK(src_path <> dst_path)) WITHOUT ROWID",
            "CREATE TABLE index_state(id INTEGER PRIMARY KEY CHECK(id = 1), head_sha TEXT,"
            " embed_model TEXT, embed_dim INTEGER, rebuilt_at TEXT, updated_at TEXT,"
            " dirty_paths TEXT NOT NULL DEFAULT '[]', unfinished INTEGER NOT NULL DEFAULT 0)",
            # Live files that are not indexed, because a path before theirs has the same article.
            "CREATE TABLE duplicates(path TEXT PRIMARY KEY, content_hash TEXT NOT NULL,"
            " blob_sha TEXT NOT NULL) WITHOUT ROWID",
            "CREATE TABLE memory_session_links(path TEXT NOT NULL, session_id TEXT NOT NULL,"
            " prompt_id TEXT, turn_uuid TEXT, link_kind TEXT NOT NULL, at TEXT NOT NULL)",
            # External content: the texts are in `files`, the triggers keep the two in step.
            "CREATE VIRTUAL TABLE files_fts USING fts5(fts_text, content='files',"
            " content_rowid='id', tokenize='porter unicode61')",
            "CREATE TRIGGER files_fts_insert AFTER INSERT ON files BEGIN"
            " INSERT INTO files_fts(rowid, fts_text) VALUES(new.id, new.fts_text); END",
            "CREATE TRIGGER files_fts_delete AFTER DELETE ON files BEGIN"
            " INSERT INTO files_fts(files_fts, rowid, fts_text)"
            " VALUES('delete', old.id, old.fts_text); END",
            "CREATE TRIGGER files_fts_update AFTER UPDATE OF fts_text ON files"
            " WHEN old.fts_text <> new.fts_text BEGIN"
            " INSERT INTO files_fts(files_fts, rowid, fts_text)"
            " VALUES('delete', old.id, old.fts_text);"
            " INSERT INTO files_fts(rowid, fts_text) VALUES(new.id, new.fts_text); END",
            "CREATE INDEX files_type ON files(memory_type, path) WHERE archived = 0",
            "CREATE INDEX files_archived_type ON files(memory_type, path) WHERE archived = 1",
            "CREATE INDEX files_workspace ON files(workspace, path) WHERE workspace IS NOT NULL",
            "CREATE INDEX files_para ON files(para, path)",
            # The arms of search walk these two, live and archived files apart. What a scope of
            # types or of an instant asks comes last, so that no row is read to be passed over.
            "CREATE INDEX files_updated ON files(archived, updated_at DESC, path, memory_type,"
            " valid_from, event_at, created_at, valid_until)",
            "CREATE INDEX files_recency ON files(archived, coalesce(event_at, updated_at) DESC,"
            " path, memory_type, valid_from, event_at, created_at, valid_until)",
            "CREATE INDEX files_event ON files(event_at)",
            "CREATE INDEX files_session ON files(session_id)",
            "CREATE INDEX files_until ON files(valid_until) WHERE archived = 0",
            "CREATE INDEX files_blob ON files(blob_sha)",
            "CREATE INDEX files_origin ON files(origin_path) WHERE origin_path IS NOT NULL",
            "CREATE INDEX files_frame ON files(frame_key, path)"
            " WHERE archived = 0 AND memory_type <> 'task' AND frame_key IS NOT NULL",
            "CREATE INDEX files_hash ON files(content_hash, path)"
            " WHERE archived = 0 AND memory_type <> 'task'",
            "CREATE INDEX duplicates_hash ON duplicates(content_hash, path)",
            "CREATE INDEX tags_tag ON file_tags(tag, path)",
            "CREATE INDEX entities_entity ON file_entities(entity_type, entity_name, path)",
            # A scope compares entities with ASCII case folded (spec `retrieval` §6).
            "CREATE INDEX entities_folded ON file_entities(entity_type COLLATE NOCASE,"
            " entity_name COLLATE NOCASE, path)",
            "CREATE INDEX facets_path ON file_facets(path)",
            "CREATE INDEX facets_pair ON file_facets(name, value, path)",
            "CREATE INDEX citations_path ON file_citations(path)",
            "CREATE INDEX chunks_id ON chunks(chunk_id)",
            # Coverage counts the chunks of one space without reading a vector.
            "CREATE INDEX embeddings_space ON embeddings(model, chunk_id)",
            "CREATE INDEX edges_src ON edges(src_path, edge_class)",
            "CREATE INDEX edges_dst ON edges(dst_path, edge_class)",
            "CREATE INDEX links_path ON memory_session_links(path)",
            "CREATE INDEX links_session ON memory_session_links(session_id)",
        ),
    ),
)

# The tables are those of the reference's release 0.15.1, under the names it keeps in
# `schema_migrations`: state.db cannot be rebuilt, so either program opens the other's.
STATE_MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "S0001_access.sql",
        (
            "CREATE TABLE IF NOT EXISTS access(path TEXT PRIMARY KEY,"
            " access_count INTEGER NOT NULL DEFAULT 0 CHECK(access_count >= 0),"
            " reinforcement_count INTEGER NOT NULL DEFAULT 0 CHECK(reinforcement_count >= 0),"
            " outcome_score REAL NOT NULL DEFAULT 0"
            " CHECK(outcome_score >= -1 AND outcome_score <= 1),"
            " last_accessed_at TEXT, last_reinforced_at TEXT, updated_at TEXT)",
            "CREATE TABLE IF NOT EXISTS edge_corroboration(src_path TEXT NOT NULL,"
            " rel TEXT NOT NULL, dst_path TEXT NOT NULL,"
            " detections INTEGER NOT NULL DEFAULT 1 CHECK(detections >= 1),"
            " confirmed INTEGER NOT NULL DEFAULT 0, promoted INTEGER NOT NULL DEFAULT 0,"
            " updated_at TEXT, PRIMARY KEY(src_path, rel, dst_path))",
        ),
    ),
    (
        "S0002_entity_corroboration.sql",
        (
            "CREATE TABLE IF NOT EXISTS entity_corroboration(entity_type TEXT NOT NULL,"
            " alias_name TEXT NOT NULL, canonical_name TEXT NOT NULL,"
            " detections INTEGER NOT NULL DEFAULT 1 CHECK(detections >= 1),"
            " confirmed INTEGER NOT NULL DEFAULT 0, promoted INTEGER NOT NULL DEFAULT 0,"
            " updated_at TEXT, PRIMARY KEY(entity_type, alias_name, canonical_name))",
        ),
    ),
)
