//! Flight SQL: what ADBC, JDBC and ODBC drivers speak, with answers about the server: catalogs, schemas, tables, types
//! and facts.
//!
//! ```text
//! GetFlightInfo(statement) ─▶ columns, and a ticket   DoGet(ticket) ─▶ rows
//! CreatePreparedStatement ─▶ handle ─ DoPut(parameters) ─▶ handle with the parameters ─▶ GetFlightInfo
//! ```
//!
//! The server remembers nothing between requests: tickets and handles hold the text of the statement and its parameters
//! ([`Handle`]). So no client fills its memory, and each of several connections of a client can fetch rows.

use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, CommandGetCatalogs,
    CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, Nullable, ProstMessageExt, Searchable, SqlInfo,
    SqlSupportedTransaction, TicketStatementQuery, XdbcDataType,
};
use arrow_flight::{
    CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, IpcMessage, SchemaAsIpc, Ticket,
};
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use datafusion::catalog::SchemaProvider;
use datafusion::datasource::TableType;
use futures::{Stream, TryStreamExt, stream};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use crate::access::Access;
use crate::connections::InUse;
use crate::refusal::{Kind, Refusal};
use crate::statements::{Statements, Text, only_reads};
use crate::wire::{self, Given};
use tadoc_session::Session;

/// Maximum bytes of the parameters of a statement.
const MAX_PARAMETER_BYTES: usize = 1 << 20;

/// Header of a response with the notices about its statement.
const NOTICE: &str = "tadoc-notice";
/// Most characters of notices in a header. Clients limit these.
const MAX_NOTICE_CHARS: usize = 1000;

type Rows = <Flight as FlightService>::DoGetStream;
type Answer<T> = Result<Response<T>, Status>;

/// The service of Flight SQL; see the module docs.
#[derive(Clone)]
pub struct Flight {
    statements: Arc<Statements>,
    access: Access,
}

/// The bytes of a ticket and of the handle of a prepared statement.
#[derive(Clone, PartialEq, Message)]
struct Handle {
    /// The number under which the statement can be cancelled, in a ticket.
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    /// The statement.
    #[prost(string, tag = "2")]
    sql: String,
    /// The values of the parameters as a stream of Arrow's IPC, if there are any.
    #[prost(bytes = "bytes", tag = "3")]
    parameters: Bytes,
}

impl Handle {
    fn read(bytes: Bytes) -> Result<Self, Status> {
        Self::decode(bytes).map_err(|_| Status::invalid_argument("this is no handle of this server"))
    }

    fn bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    fn text(self) -> Result<Text, Status> {
        let id = Uuid::from_slice(&self.id).unwrap_or_else(|_| Uuid::new_v4());
        let parameters =
            if self.parameters.is_empty() { Given::Nothing } else { Given::Row(read_row(&self.parameters)?) };
        Ok(Text { id, sql: self.sql, parameters })
    }
}

impl Flight {
    /// Creates the service.
    pub fn new(statements: Arc<Statements>, access: Access) -> Self {
        Self { statements, access }
    }

    /// Returns the columns of the statement of `handle`, and the ticket for its rows.
    async fn info(&self, handle: Handle, descriptor: FlightDescriptor) -> Answer<FlightInfo> {
        let planned = self.statements.columns(handle.clone().text()?).await?;
        let handle = Handle { id: Uuid::new_v4().into_bytes().into(), ..handle };
        let ticket = TicketStatementQuery { statement_handle: handle.bytes() };
        let info = info(&planned.schema, ticket.as_any(), descriptor)?;
        Ok(with_notices(info, &planned.notices))
    }

    async fn rows<T>(&self, handle: Bytes, request: &Request<T>) -> Answer<Rows> {
        let text = Handle::read(handle)?.text()?;
        let in_use = request.extensions().get::<InUse>().cloned();
        let in_use = in_use.ok_or_else(|| Status::internal("no connection"))?;
        let rows = self.statements.run(text, in_use).await?;
        let schema = Arc::clone(&rows.schema);
        let notices = rows.notices.clone();
        let batches = stream::unfold(rows, async |mut rows| Some((rows.next().await?, rows)));
        let response = Response::new(encoded(schema, batches.map_err(Status::from)));
        Ok(with_notices(response, &notices))
    }

    /// Runs `work`, which makes a batch from the catalogs.
    async fn listing<F>(&self, work: impl FnOnce(Arc<Statements>) -> F + Send + 'static) -> Answer<Rows>
    where
        F: Future<Output = Result<RecordBatch, Refusal>>,
    {
        let batch = self.statements.planned(work).await?;
        Ok(Response::new(one_batch(batch)))
    }

    /// Cancels the statement of `info`.
    fn cancel(&self, info: Bytes) -> Result<CancelStatus, Status> {
        let no_info = |_| Status::invalid_argument("expected the FlightInfo of a statement");
        let info = FlightInfo::decode(info).map_err(no_info)?;
        let mut is_cancelled = false;
        for ticket in info.endpoint.into_iter().filter_map(|endpoint| endpoint.ticket) {
            let any = Any::decode(ticket.ticket).map_err(no_info)?;
            let ticket = any.unpack::<TicketStatementQuery>();
            let ticket = ticket.ok().flatten();
            let ticket = ticket.ok_or_else(|| Status::invalid_argument("no ticket of a query"))?;
            let handle = Handle::read(ticket.statement_handle)?;
            let id = Uuid::from_slice(&handle.id);
            is_cancelled |= id.is_ok_and(|id| self.statements.cancel(id));
        }
        Ok(if is_cancelled { CancelStatus::Cancelled } else { CancelStatus::NotCancellable })
    }
}

#[tonic::async_trait]
impl FlightSqlService for Flight {
    type FlightService = Self;

    /// Gives a client with a user name and a password the header for its other requests. The
    /// password, which is the token, was checked before.
    async fn do_handshake(
        &self,
        _request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>> {
        let bearer = self.access.bearer();
        let payload = bearer.clone().unwrap_or_default().into_bytes().into();
        let answer = HandshakeResponse { protocol_version: 0, payload };
        let answers: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(stream::iter([Ok(answer)]));
        let mut response = Response::new(answers);
        if let Some(bearer) = bearer {
            let value = MetadataValue::try_from(bearer);
            let value = value.map_err(|_| Status::internal("the token is no header"))?;
            response.metadata_mut().insert("authorization", value);
        }
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let handle = Handle { sql: query.query, ..Handle::default() };
        self.info(handle, request.into_inner()).await
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let handle = Handle::read(query.prepared_statement_handle)?;
        self.info(handle, request.into_inner()).await
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, request: Request<Ticket>) -> Answer<Rows> {
        self.rows(ticket.statement_handle, &request).await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Answer<Rows> {
        self.rows(query.prepared_statement_handle, &request).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        _request: Request<arrow_flight::Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let described = self.statements.describe(query.query.clone()).await?;
        let handle = Handle { sql: query.query, ..Handle::default() };
        let columns = described.columns.as_deref();
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle.bytes(),
            dataset_schema: columns.map_or_else(|| Ok(Bytes::new()), schema_bytes)?,
            parameter_schema: schema_bytes(&described.parameters)?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        _query: ActionClosePreparedStatementRequest,
        _request: Request<arrow_flight::Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let mut handle = Handle::read(query.prepared_statement_handle)?;
        let data = request.into_inner().map_err(FlightError::from);
        let mut batches = FlightRecordBatchStream::new_from_flight_data(data);
        let mut row = None;
        while let Some(batch) = batches.try_next().await? {
            let is_second = row.as_ref().is_some_and(|row: &RecordBatch| row.num_rows() > 0);
            if batch.num_rows() > 1 || is_second && batch.num_rows() > 0 {
                return Err(Status::invalid_argument(
                    "expected one row of parameters; run the statement once for each",
                ));
            }
            if row.is_none() || batch.num_rows() > 0 {
                row = Some(batch);
            }
        }
        handle.parameters = match row {
            Some(row) if row.num_rows() > 0 => row_bytes(&row)?,
            _ => Bytes::new(),
        };
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle.bytes()) })
    }

    async fn do_put_statement_update(
        &self,
        ticket: CommandStatementUpdate,
        _request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(self.statements.refuse_change(&ticket.query).into())
    }

    async fn do_put_prepared_statement_update(
        &self,
        query: CommandPreparedStatementUpdate,
        _request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let handle = Handle::read(query.prepared_statement_handle)?;
        Err(self.statements.refuse_change(&handle.sql).into())
    }

    async fn do_put_statement_ingest(
        &self,
        _ticket: CommandStatementIngest,
        _request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(only_reads().into())
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        _request: Request<arrow_flight::Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        // Its own enumeration is private, and has the same numbers.
        Ok(ActionCancelQueryResult { result: self.cancel(query.info)?.into() })
    }

    async fn do_action_fallback(
        &self,
        request: Request<arrow_flight::Action>,
    ) -> Answer<<Self as FlightService>::DoActionStream> {
        let action = request.into_inner();
        if action.r#type != "CancelFlightInfo" {
            return Err(Status::unimplemented(format!("there is no action {}", action.r#type)));
        }
        let no_request = |_| Status::invalid_argument("expected a CancelFlightInfoRequest");
        let cancel = CancelFlightInfoRequest::decode(action.body).map_err(no_request)?;
        let info = cancel.info.map(|info| info.encode_to_vec()).unwrap_or_default();
        let result = CancelFlightInfoResult { status: self.cancel(info.into())?.into() };
        let result = arrow_flight::Result { body: result.encode_to_vec().into() };
        Ok(Response::new(Box::pin(stream::iter([Ok(result)]))))
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.into_builder().schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, _request: Request<Ticket>) -> Answer<Rows> {
        self.listing(async move |statements| catalogs(statements.session(), query)).await
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.clone().into_builder().schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, _request: Request<Ticket>) -> Answer<Rows> {
        self.listing(async move |statements| schemas(statements.session(), query)).await
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.clone().into_builder().schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_tables(&self, query: CommandGetTables, _request: Request<Ticket>) -> Answer<Rows> {
        let tables = async move |statements: Arc<Statements>| tables(statements.session(), query).await;
        self.listing(tables).await
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.into_builder().schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_table_types(&self, query: CommandGetTableTypes, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(table_types(query)?)))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = sql_info(&query)?.schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(sql_info(&query)?)))
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = types(query.data_type)?.schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_xdbc_type_info(&self, query: CommandGetXdbcTypeInfo, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(types(query.data_type)?)))
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&primary_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_primary_keys(&self, _query: CommandGetPrimaryKeys, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(primary_keys())))
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&foreign_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_exported_keys(&self, _query: CommandGetExportedKeys, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(foreign_keys())))
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&foreign_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_imported_keys(&self, _query: CommandGetImportedKeys, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(foreign_keys())))
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&foreign_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_cross_reference(
        &self,
        _query: CommandGetCrossReference,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        Ok(Response::new(one_batch(foreign_keys())))
    }

    /// Does nothing: [`metadata::sql_info`] has all facts.
    async fn register_sql_info(&self, _id: i32, _result: &SqlInfo) {}
}

/// Puts `notices` into a header of the response, if there are any. A header has ASCII only.
fn with_notices<T>(mut response: Response<T>, notices: &[String]) -> Response<T> {
    let in_ascii = |c: char| {
        if c.is_ascii_graphic() || c == ' ' { c.to_string() } else { c.escape_unicode().to_string() }
    };
    let text: String = notices.join("; ").chars().take(MAX_NOTICE_CHARS).map(in_ascii).collect();
    if let (false, Ok(text)) = (text.is_empty(), MetadataValue::try_from(text)) {
        response.metadata_mut().insert(NOTICE, text);
    }
    response
}

fn info(columns: &Schema, ticket: Any, descriptor: FlightDescriptor) -> Answer<FlightInfo> {
    let ticket = Ticket { ticket: ticket.encode_to_vec().into() };
    let endpoint = FlightEndpoint::new().with_ticket(ticket);
    let info = FlightInfo::new().try_with_schema(columns).map_err(Refusal::from)?;
    Ok(Response::new(info.with_endpoint(endpoint).with_descriptor(descriptor)))
}

fn one_batch(batch: RecordBatch) -> Rows {
    encoded(batch.schema(), stream::iter([Ok(batch)]))
}

fn encoded(schema: SchemaRef, batches: impl Stream<Item = Result<RecordBatch, Status>> + Send + 'static) -> Rows {
    let batches = batches.map_err(|status| FlightError::Tonic(Box::new(status)));
    let encoder = FlightDataEncoderBuilder::new().with_schema(schema).build(batches);
    Box::pin(encoder.map_err(Status::from))
}

/// Returns `schema` as a message of Arrow's IPC.
fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &options));
    message.map(|message| message.0).map_err(|error| Refusal::from(error).into())
}

fn row_bytes(row: &RecordBatch) -> Result<Bytes, Status> {
    let write = || {
        let mut writer = StreamWriter::try_new(Vec::new(), &row.schema())?;
        writer.write(row)?;
        writer.into_inner()
    };
    let bytes = write().map_err(Refusal::from)?;
    if bytes.len() <= MAX_PARAMETER_BYTES {
        Ok(bytes.into())
    } else {
        Err(Status::invalid_argument("the parameters have more than 1 MiB"))
    }
}

fn read_row(bytes: &[u8]) -> Result<RecordBatch, Status> {
    let read = || StreamReader::try_new(bytes, None)?.next().transpose();
    let row = read().map_err(Refusal::from)?;
    row.ok_or_else(|| Refusal::new(Kind::Invalid, "the handle has no parameters").into())
}

/// Kinds of tables.
const TABLE_TYPES: [&str; 2] = ["TABLE", "VIEW"];

/// Returns the catalogs.
pub fn catalogs(session: &Session, query: CommandGetCatalogs) -> Result<RecordBatch, Refusal> {
    let mut builder = query.into_builder();
    session.context().catalog_names().into_iter().for_each(|name| builder.append(name));
    builder.build().map_err(broken)
}

/// Returns the schemas of the catalogs.
pub fn schemas(session: &Session, query: CommandGetDbSchemas) -> Result<RecordBatch, Refusal> {
    let mut builder = query.into_builder();
    for (catalog, name, _) in all_schemas(session) {
        builder.append(catalog, name);
    }
    builder.build().map_err(broken)
}

/// Returns the tables of the schemas.
pub async fn tables(session: &Session, query: CommandGetTables) -> Result<RecordBatch, Refusal> {
    let mut builder = query.into_builder();
    for (catalog, name, schema) in all_schemas(session) {
        for table in schema.table_names() {
            // A table may be gone by now.
            let Some(provider) = schema.table(&table).await? else { continue };
            let kind = match provider.table_type() {
                TableType::View => TABLE_TYPES[1],
                TableType::Base | TableType::Temporary => TABLE_TYPES[0],
            };
            let columns = wire::schema(&provider.schema());
            builder.append(&catalog, &name, table, kind, &columns).map_err(broken)?;
        }
    }
    builder.build().map_err(broken)
}

/// Returns the kinds of tables.
pub fn table_types(query: CommandGetTableTypes) -> Result<RecordBatch, Refusal> {
    let mut builder = query.into_builder();
    TABLE_TYPES.into_iter().for_each(|kind| builder.append(kind));
    builder.build().map_err(broken)
}

/// Returns the facts that `query` asks for, or all.
pub fn sql_info(query: &CommandGetSqlInfo) -> Result<RecordBatch, Refusal> {
    static FACTS: LazyLock<Option<SqlInfoData>> = LazyLock::new(|| facts().build().ok());
    let facts = FACTS.as_ref().ok_or_else(|| Refusal::new(Kind::Broken, "there are no facts"))?;
    facts.record_batch(query.info.iter().copied()).map_err(broken)
}

fn facts() -> SqlInfoDataBuilder {
    let mut facts = SqlInfoDataBuilder::new();
    facts.append(SqlInfo::FlightSqlServerName, "tadoc");
    facts.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    facts.append(SqlInfo::FlightSqlServerArrowVersion, datafusion::arrow::ARROW_VERSION);
    facts.append(SqlInfo::FlightSqlServerReadOnly, true);
    facts.append(SqlInfo::FlightSqlServerSql, true);
    facts.append(SqlInfo::FlightSqlServerSubstrait, false);
    facts.append(SqlInfo::FlightSqlServerCancel, true);
    facts.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    facts.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    facts.append(SqlInfo::SqlDdlCatalog, false);
    facts.append(SqlInfo::SqlDdlSchema, false);
    facts.append(SqlInfo::SqlDdlTable, false);
    facts.append(SqlInfo::SqlAllTablesAreSelectable, true);
    facts.append(SqlInfo::SqlTransactionsSupported, false);
    facts
}

/// Returns the types of columns that functions and tables of corpora have.
pub fn types(data_type: Option<i32>) -> Result<RecordBatch, Refusal> {
    static TYPES: LazyLock<Option<XdbcTypeInfoData>> = LazyLock::new(|| {
        let mut types = XdbcTypeInfoDataBuilder::new();
        for (name, data_type, size, quote) in [
            ("bigint", XdbcDataType::XdbcBigint, 19, None),
            ("double", XdbcDataType::XdbcDouble, 53, None),
            ("varchar", XdbcDataType::XdbcVarchar, i32::MAX, Some("'")),
        ] {
            types.append(XdbcTypeInfo {
                type_name: name.to_owned(),
                data_type,
                column_size: Some(size),
                literal_prefix: quote.map(str::to_owned),
                literal_suffix: quote.map(str::to_owned),
                create_params: None,
                nullable: Nullable::NullabilityNullable,
                case_sensitive: true,
                searchable: Searchable::Full,
                unsigned_attribute: Some(false),
                fixed_prec_scale: false,
                auto_increment: Some(false),
                local_type_name: Some(name.to_owned()),
                minimum_scale: None,
                maximum_scale: None,
                sql_data_type: data_type,
                datetime_subcode: None,
                num_prec_radix: None,
                interval_precision: None,
            });
        }
        types.build().ok()
    });
    let types = TYPES.as_ref().ok_or_else(|| Refusal::new(Kind::Broken, "there are no types"))?;
    types.record_batch(data_type).map_err(broken)
}

/// Returns the primary keys: no rows.
pub fn primary_keys() -> RecordBatch {
    let texts = ["catalog_name", "db_schema_name", "table_name", "column_name"];
    let mut fields = Vec::from(texts.map(|name| {
        let is_nullable = name.starts_with("catalog") || name.starts_with("db");
        Field::new(name, DataType::Utf8, is_nullable)
    }));
    fields.push(Field::new("key_name", DataType::Utf8, true));
    fields.push(Field::new("key_sequence", DataType::Int32, false));
    RecordBatch::new_empty(Arc::new(Schema::new(fields)))
}

/// Returns the foreign keys: no rows.
pub fn foreign_keys() -> RecordBatch {
    let side_columns = |side: &str| {
        ["catalog_name", "db_schema_name", "table_name", "column_name"].map(|name| {
            let is_nullable = name.starts_with("catalog") || name.starts_with("db");
            Field::new(format!("{side}_{name}"), DataType::Utf8, is_nullable)
        })
    };
    let mut fields = Vec::from(side_columns("pk"));
    fields.extend(side_columns("fk"));
    fields.push(Field::new("key_sequence", DataType::Int32, false));
    fields.push(Field::new("fk_key_name", DataType::Utf8, true));
    fields.push(Field::new("pk_key_name", DataType::Utf8, true));
    fields.push(Field::new("update_rule", DataType::UInt8, false));
    fields.push(Field::new("delete_rule", DataType::UInt8, false));
    RecordBatch::new_empty(Arc::new(Schema::new(fields)))
}

fn all_schemas(session: &Session) -> impl Iterator<Item = (String, String, Arc<dyn SchemaProvider>)> + use<> {
    let context = session.context().clone();
    let catalogs = session.context().catalog_names().into_iter();
    let catalogs = catalogs.filter_map(move |name| Some((context.catalog(&name)?, name)));
    catalogs
        .flat_map(|(catalog, catalog_name)| {
            let schemas = catalog.schema_names().into_iter();
            schemas.filter_map(move |name| Some((catalog_name.clone(), catalog.schema(&name)?, name)))
        })
        .map(|(catalog, schema, name)| (catalog, name, schema))
}

fn broken(error: FlightError) -> Refusal {
    Refusal::new(Kind::Broken, error.to_string())
}
