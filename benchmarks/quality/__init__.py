"""Quality of class probabilities on a folder of tables, compared with scikit-learn, CatBoost, LightGBM and XGBoost."""
