//! The methods of plan nodes that have no input or one, written once for all of them.
//!
//! DataFusion's trait has no default for them: a node says which children it has, and refuses others.

/// Writes the methods of `ExecutionPlan` that all leaves share. The node has a field `properties`.
#[doc(hidden)]
#[macro_export]
macro_rules! leaf_methods {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![]
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _options: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            match children.len() {
                0 => Ok(self),
                more => {
                    ::datafusion::common::internal_err!("{} is a leaf, got {more} children", $name)
                }
            }
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            use ::datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            self.replace_children(children, options)
        }
    };
}

/// Writes the methods of `ExecutionPlan` that nodes share whose one child is their field `input`, and which
/// have no expressions. `$new` is the node `$node` above another child.
#[doc(hidden)]
#[macro_export]
macro_rules! one_input_methods {
    ($name:literal, |$node:ident, $input:ident| $new:expr) => {
        fn name(&self) -> &str {
            $name
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>,
            ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            mut children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _options: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            let $node = self.as_ref();
            match (children.pop(), children.len()) {
                (Some($input), 0) => {
                    let new: ::datafusion::error::Result<Self> = $new;
                    Ok(::std::sync::Arc::new(new?))
                }
                (_, more) => {
                    ::datafusion::common::internal_err!("{} has one child, got {more} more", $name)
                }
            }
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            use ::datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            self.replace_children(children, options)
        }
    };
}

/// Writes the methods of [`one_input_methods`], and those of a node whose rows are those of its input in the same
/// order and partitions.
macro_rules! passing_methods {
    ($name:literal, |$node:ident, $input:ident| $new:expr) => {
        $crate::plan_methods::one_input_methods!($name, |$node, $input| $new);

        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }
    };
}

/// Writes the methods of `ExecutionPlan` that nodes share whose rows are those of their field `input`.
#[doc(hidden)]
#[macro_export]
macro_rules! same_rows_methods {
    () => {
        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<::datafusion::physical_plan::statistics::ChildStats> {
            vec![::datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn statistics_from_inputs(
            &self,
            input_stats: &[::std::sync::Arc<::datafusion::common::Statistics>],
            _args: &::datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> ::datafusion::error::Result<::std::sync::Arc<::datafusion::common::Statistics>> {
            Ok(::std::sync::Arc::clone(&input_stats[0]))
        }

        fn supports_limit_pushdown(&self) -> bool {
            true
        }

        fn cardinality_effect(&self) -> ::datafusion::physical_plan::execution_plan::CardinalityEffect {
            ::datafusion::physical_plan::execution_plan::CardinalityEffect::Equal
        }
    };
}

pub use leaf_methods;
pub use one_input_methods;
pub(crate) use passing_methods;
pub use same_rows_methods;
