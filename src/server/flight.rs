//! Flight SQL: what ADBC, JDBC and ODBC drivers speak.
//!
//! ```text
//! GetFlightInfo(statement) ─▶ columns, and a ticket   DoGet(ticket) ─▶ rows
//! CreatePreparedStatement ─▶ handle ─ DoPut(parameters) ─▶ handle with the parameters ─▶ GetFlightInfo
//! ```
//!
//! The server remembers nothing between requests: tickets and handles hold the text of the statement
//! and its parameters ([`Handle`]). So no client fills its memory, and each of several connections of
//! a client can fetch rows.

use std::pin::Pin;
use std::sync::Arc;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, CommandGetCatalogs,
    CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, IpcMessage, SchemaAsIpc, Ticket,
};
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use futures::{Stream, TryStreamExt, stream};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use crate::access::Access;
use crate::connections::InUse;
use crate::metadata;
use crate::refusal::{Kind, Refusal};
use crate::statements::{Statements, Text, only_reads};

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
        let parameters = if self.parameters.is_empty() { None } else { Some(read_row(&self.parameters)?) };
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
        let (schema, notices) = (Arc::clone(&rows.schema), rows.notices.clone());
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
        self.listing(async move |statements| metadata::catalogs(statements.session(), query)).await
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
        self.listing(async move |statements| metadata::schemas(statements.session(), query)).await
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
        let tables = async move |statements: Arc<Statements>| metadata::tables(statements.session(), query).await;
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
        Ok(Response::new(one_batch(metadata::table_types(query)?)))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = metadata::sql_info(&query)?.schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(metadata::sql_info(&query)?)))
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = metadata::types(query.data_type)?.schema();
        info(&schema, query.as_any(), request.into_inner())
    }

    async fn do_get_xdbc_type_info(&self, query: CommandGetXdbcTypeInfo, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(metadata::types(query.data_type)?)))
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::primary_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_primary_keys(&self, _query: CommandGetPrimaryKeys, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(metadata::primary_keys())))
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::foreign_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_exported_keys(&self, _query: CommandGetExportedKeys, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(metadata::foreign_keys())))
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::foreign_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_imported_keys(&self, _query: CommandGetImportedKeys, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(Response::new(one_batch(metadata::foreign_keys())))
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&metadata::foreign_keys().schema(), query.as_any(), request.into_inner())
    }

    async fn do_get_cross_reference(
        &self,
        _query: CommandGetCrossReference,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        Ok(Response::new(one_batch(metadata::foreign_keys())))
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
