//! The methods of plan nodes that have no inputs, written once for all of them.
//!
//! DataFusion's trait has no default for them: a leaf says that it has no children, and refuses some.

/// Writes the methods of `ExecutionPlan` that all leaves share. The node has a field `properties`.
macro_rules! leaf_methods {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![]
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _options: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::error::Result<
            ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
        > {
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
        ) -> ::datafusion::error::Result<
            ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
        > {
            use ::datafusion::physical_plan::execution_plan::{
                ChildrenPropertiesMode, ReplaceChildrenOptions,
            };
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            self.replace_children(children, options)
        }
    };
}

pub(crate) use leaf_methods;
