//! Names of types, each visible from its declaration to the end of the enclosing block.

use super::types::CtfType;
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct CtfScopes(Vec<HashMap<String, CtfType>>);

impl Default for CtfScopes {
    fn default() -> CtfScopes {
        CtfScopes(vec![HashMap::new()])
    }
}

impl CtfScopes {
    pub(super) fn open(&mut self) {
        self.0.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.0.pop();
    }

    pub(super) fn add(&mut self, name: String, declared: CtfType) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name, declared);
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<CtfType> {
        self.0.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }
}
