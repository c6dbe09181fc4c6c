-- Text that was lost: what an agent itself said that it works on, and what came of a work item.

-- `current_work` is the title of the item that the agent claimed last, while it holds one. `own_work` is what the agent
-- said with its registration or a heartbeat: `current_work` falls back to it.
ALTER TABLE agents ADD COLUMN own_work TEXT;

-- The summary of a completed item.
ALTER TABLE work_items ADD COLUMN summary TEXT;

UPDATE agents SET own_work = current_work WHERE current_work IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM work_items WHERE claimed_by = agents.session_id AND title = agents.current_work
);
