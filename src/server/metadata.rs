//! Answers about the server: catalogs, schemas, tables, types and facts, as Flight SQL defines them.

use std::sync::{Arc, LazyLock};

use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, Nullable,
    Searchable, SqlInfo, SqlSupportedTransaction, XdbcDataType,
};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::SchemaProvider;
use datafusion::datasource::TableType;
use tadoc_session::Session;

use crate::refusal::{Kind, Refusal};
use crate::wire;

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
    let of_side = |side: &str| {
        ["catalog_name", "db_schema_name", "table_name", "column_name"].map(|name| {
            let is_nullable = name.starts_with("catalog") || name.starts_with("db");
            Field::new(format!("{side}_{name}"), DataType::Utf8, is_nullable)
        })
    };
    let mut fields = Vec::from(of_side("pk"));
    fields.extend(of_side("fk"));
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
