//! Names of types, each visible from its declaration to the end of the enclosing block.

use super::types::Type;
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Scopes(Vec<HashMap<String, Type>>);

impl Default for Scopes {
    fn default() -> Scopes {
        Scopes(vec![HashMap::new()])
    }
}

impl Scopes {
    pub(super) fn open(&mut self) {
        self.0.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.0.pop();
    }

    pub(super) fn add(&mut self, name: String, declared: Type) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name, declared);
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Type> {
        self.0.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }
}
