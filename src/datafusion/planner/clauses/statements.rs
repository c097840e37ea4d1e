//! Clauses of statements that are no queries: of changes of tables, of definitions, of `COPY`, and of types.
//!
//! The planner drops them, or checks less than they say: a primary key is not enforced, but plans are made
//! shorter by it.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToStatement, CreateExternalTable};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, Assignment, AssignmentTarget, ColumnDef, ColumnOption, CreateTable, DataType, Delete,
    ExactNumberInfo, FromTable, ObjectType, Statement, TableConstraint, TableFactor, Update, Value,
};

use super::{Outcome, refuse};

/// Precision in bits of the numbers that `FLOAT` stands for.
const FLOAT_BITS: u64 = 24;

pub(super) fn check_statement(statement: &Statement) -> Outcome {
    match statement {
        Statement::Delete(delete) => check_delete(delete),
        Statement::Update(update) => check_update(update),
        Statement::Drop { object_type, cascade, restrict, purge, temporary, .. } => {
            let is_table = matches!(object_type, ObjectType::Table | ObjectType::View);
            let views = "drop the views that read it by their names";
            refuse(is_table && *cascade, "CASCADE", views)?;
            refuse(*restrict, "RESTRICT", "leave it out; views that read it are not looked for")?;
            refuse(*purge, "PURGE", "leave it out; files are removed outside SQL")?;
            refuse(*temporary, "DROP TEMPORARY", "leave TEMPORARY out")
        }
        Statement::DropFunction(function) => {
            refuse(function.drop_behavior.is_some(), "CASCADE or RESTRICT", "leave it out")
        }
        Statement::CreateView(view) => {
            refuse(view.secure, "SECURE", "leave it out; safe mode limits what is read")?;
            refuse(view.or_alter, "OR ALTER", "write CREATE OR REPLACE VIEW")?;
            let params = "leave ALGORITHM, DEFINER and SQL SECURITY out";
            refuse(view.params.is_some(), "parameters of a view", params)
        }
        Statement::CreateTable(table) => check_table(table),
        Statement::CreateSchema { with, options, default_collate_spec, clone, .. } => {
            let has_options = with.is_some() || options.is_some() || default_collate_spec.is_some() || clone.is_some();
            refuse(has_options, "an option of CREATE SCHEMA", "leave it out")
        }
        Statement::CreateDatabase { db_name, if_not_exists, .. } => {
            let exists = if *if_not_exists { "IF NOT EXISTS " } else { "" };
            let plain = format!("CREATE DATABASE {exists}{db_name}");
            refuse(statement.to_string() != plain, "an option of CREATE DATABASE", "leave it out")
        }
        Statement::ExplainTable { hive_format, .. } => {
            let instead = "write DESCRIBE and the name";
            refuse(hive_format.is_some(), "EXTENDED or FORMATTED", instead)
        }
        Statement::Prepare { data_types, .. } => data_types.iter().try_for_each(check_type),
        _ => ControlFlow::Continue(()),
    }
}

pub(super) fn check_copy(copy: &CopyToStatement, state: &SessionState) -> Outcome {
    let format = copy.stored_as.as_deref();
    let is_unknown = format.is_some_and(|format| state.get_file_format_factory(format).is_none());
    let formats = "write STORED AS PARQUET, CSV, JSON, ARROW, AVRO, GSST or TADOC, or leave it out";
    refuse(is_unknown, "STORED AS and an unknown format", formats)?;
    check_options(&copy.options)
}

pub(super) fn check_external_table(table: &CreateExternalTable) -> Outcome {
    check_constraints(&table.constraints)?;
    table.columns.iter().try_for_each(check_column)?;
    let has_decimal = table.columns.iter().any(|column| is_decimal(&column.data_type));
    let instead = "declare a text, and cast it in statements";
    refuse(table.unbounded && has_decimal, "DECIMAL in an unbounded table", instead)?;
    check_options(&table.options)
}

/// Returns true for a decimal, whose long numbers Arrow reads wrongly, and for a type with types inside.
fn is_decimal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal(_)
            | DataType::Numeric(_)
            | DataType::Dec(_)
            | DataType::Array(_)
            | DataType::Struct(..)
            | DataType::Map(..)
    )
}

/// Refuses a type in a cast whose length or precision would not change the value.
pub(super) fn check_cast(data_type: &DataType) -> Outcome {
    let has_length = match data_type {
        DataType::Varchar(length) | DataType::Char(length) => length.is_some(),
        DataType::String(length) => length.is_some(),
        _ => false,
    };
    refuse(has_length, "the length of a text in a cast", "write left(text, n)")?;
    check_type(data_type)
}

fn check_options(options: &[(String, Value)]) -> Outcome {
    let mut names = HashSet::new();
    let is_twice = options.iter().any(|(name, _)| !names.insert(name.to_ascii_lowercase()));
    refuse(is_twice, "an option that is given twice", "give it once")
}

fn check_delete(delete: &Delete) -> Outcome {
    let instead = "select the rows: DELETE … WHERE id IN (SELECT id … LIMIT n)";
    refuse(delete.limit.is_some(), "LIMIT of DELETE", instead)?;
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
    for table in tables {
        refuse(!table.joins.is_empty(), "JOIN in DELETE", "write WHERE id IN (SELECT …)")?;
        check_target(&table.relation)?;
        let has_alias = matches!(table.relation, TableFactor::Table { alias: Some(_), .. });
        refuse(has_alias, "an alias in DELETE", "name the columns without it")?;
    }
    ControlFlow::Continue(())
}

fn check_update(update: &Update) -> Outcome {
    let select = "write SET a = (SELECT …) and WHERE id IN (SELECT …)";
    refuse(!update.table.joins.is_empty(), "JOIN in UPDATE", select)?;
    check_target(&update.table.relation)?;
    let mut names = HashSet::new();
    for Assignment { target, .. } in &update.assignments {
        let AssignmentTarget::ColumnName(name) = target else { continue };
        refuse(name.0.len() > 1, "a table in SET", "write the column alone: SET a = 1")?;
        let is_twice = !names.insert(name.to_string().to_ascii_lowercase());
        refuse(is_twice, "a column that is set twice", "set it once")?;
    }
    ControlFlow::Continue(())
}

/// Checks the table that a statement changes.
fn check_target(table: &TableFactor) -> Outcome {
    let has_arguments = matches!(table, TableFactor::Table { args: Some(_), .. });
    refuse(has_arguments, "arguments behind a table", "leave them out")
}

fn check_table(table: &CreateTable) -> Outcome {
    check_constraints(&table.constraints)?;
    table.columns.iter().try_for_each(check_column)?;
    let mut options = table.columns.iter().flat_map(|column| &column.options);
    let has_options = options.any(|option| !matches!(option.option, ColumnOption::Null));
    let instead = "create the table with its columns first, and INSERT INTO it";
    refuse(table.query.is_some() && has_options, "NOT NULL or DEFAULT before AS", instead)
}

fn check_column(column: &ColumnDef) -> Outcome {
    for option in &column.options {
        match &option.option {
            ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_) => {}
            // The planner refuses them.
            ColumnOption::ForeignKey(_) | ColumnOption::Check(_) => {}
            ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_) => check_keys(true)?,
            ColumnOption::Collation(_) => refuse(true, "COLLATE of a column", OF_COLUMN)?,
            ColumnOption::Generated { .. } => refuse(true, "GENERATED of a column", OF_COLUMN)?,
            _ => {
                let clause = "an option of a column (such as AUTO_INCREMENT or COMMENT)";
                refuse(true, clause, OF_COLUMN)?;
            }
        }
    }
    check_type(&column.data_type)
}

/// Options that a column may have.
const OF_COLUMN: &str = "leave it out; columns take NOT NULL and DEFAULT";

fn check_constraints(constraints: &[TableConstraint]) -> Outcome {
    let is_key = |constraint: &TableConstraint| {
        matches!(constraint, TableConstraint::PrimaryKey(_) | TableConstraint::Unique(_))
    };
    check_keys(constraints.iter().any(is_key))
}

/// Refuses keys, which are not enforced, and by which plans leave columns out of groups and orders.
fn check_keys(has_keys: bool) -> Outcome {
    let instead = "leave it out, and look for doubled keys with GROUP BY … HAVING count(*) > 1";
    refuse(has_keys, "PRIMARY KEY or UNIQUE", instead)
}

/// Refuses types of numbers that would be stored with fewer digits.
fn check_type(data_type: &DataType) -> Outcome {
    match data_type {
        DataType::Float(ExactNumberInfo::Precision(bits)) => {
            refuse(*bits > FLOAT_BITS, "FLOAT of more than 24 bits", "write DOUBLE")
        }
        DataType::Float(ExactNumberInfo::PrecisionAndScale(..)) => {
            refuse(true, "FLOAT with digits", "write DECIMAL(p, s) or DOUBLE")
        }
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => check_type(item),
        DataType::Struct(fields, _) => fields.iter().try_for_each(|field| check_type(&field.field_type)),
        _ => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, refusal};

    #[test]
    fn ignored_clauses_are_refused_by_name() {
        for (sql, clause) in [
            ("UPDATE m JOIN v ON m.a = v.a SET b = 7", "JOIN in UPDATE"),
            ("UPDATE m SET zz.a = 9", "a table in SET"),
            ("UPDATE m SET a = 1, A = 2", "set twice"),
            ("UPDATE m('x') SET a = 1", "arguments behind a table"),
            ("DELETE FROM m('x') WHERE a = 3", "arguments behind a table"),
            ("DELETE FROM m AS x (c) WHERE a = 3", "an alias in DELETE"),
            ("DELETE FROM t WHERE a = 1 LIMIT 1", "LIMIT of DELETE"),
            ("DROP TABLE t CASCADE", "CASCADE"),
            ("CREATE TABLE p (a INT PRIMARY KEY)", "PRIMARY KEY"),
            ("CREATE TABLE p (a INT UNIQUE NOT NULL)", "UNIQUE"),
            ("CREATE TABLE p (a INT, PRIMARY KEY (a)) AS SELECT 1", "PRIMARY KEY"),
            ("CREATE TABLE p (a INT NOT NULL) AS SELECT NULL::INT", "NOT NULL or DEFAULT"),
            ("CREATE EXTERNAL TABLE e (a INT, UNIQUE (a)) STORED AS CSV LOCATION 'x'", "UNIQUE"),
            ("CREATE EXTERNAL TABLE e (a INT COMMENT 'x') STORED AS CSV LOCATION 'x'", "COMMENT"),
            ("CREATE TABLE p (a FLOAT(53))", "FLOAT of more"),
            ("CREATE TABLE p (a FLOAT(5, 2))", "FLOAT with digits"),
            ("SELECT 'abc'::VARCHAR(2)", "length of a text"),
            ("SELECT TRY_CAST(a AS CHAR(2)) FROM t", "length of a text"),
            ("SELECT CAST(a AS FLOAT(53)[]) FROM t", "FLOAT of more"),
            ("COPY t TO 'x.csv' STORED AS foo", "an unknown format"),
            ("COPY t TO 'x.csv' OPTIONS ('a' '1', 'A' '2')", "given twice"),
            ("CREATE SCHEMA s WITH (a = 1)", "CREATE SCHEMA"),
            ("CREATE DATABASE d CLONE e", "CREATE DATABASE"),
            ("DESCRIBE EXTENDED t", "EXTENDED"),
        ] {
            let error = refusal(sql);
            assert!(error.contains(clause), "{sql}: {error}");
        }
    }

    #[test]
    fn statements_that_are_executed_pass() {
        for sql in [
            "UPDATE m AS x SET a = 1, b = x.a WHERE x.a = 3",
            "DELETE FROM t WHERE a IN (SELECT a FROM t LIMIT 1)",
            "CREATE TABLE p (a INT NOT NULL DEFAULT 3, s VARCHAR(20), f FLOAT(24), i INT(3))",
            "CREATE EXTERNAL TABLE t (a INT NOT NULL) STORED AS CSV LOCATION 'x.csv' OPTIONS ('a' '1')",
            "COPY t TO 'x.csv' STORED AS csv OPTIONS ('format.has_header' 'false')",
            "SELECT CAST(a AS VARCHAR), a::DECIMAL(10, 2), a::TIMESTAMP(3) FROM t",
            "CREATE SCHEMA IF NOT EXISTS s",
            "CREATE DATABASE IF NOT EXISTS d",
            "DESCRIBE t",
        ] {
            check(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
}
